"""A notification is seen on locked screens and kept by others: it says that something waits, and nothing of it."""

import json
from typing import Any

import pytest_asyncio
from playwright.async_api import Page, expect

from tests.app import Api
from tests.browser.conftest import Visitor, live
from tests.browser.samples import asking
from tests.browser.watching import comes_true

# A page that is hidden, in a browser that keeps what it is told to show.
STAND_IN = """
  window.shown = [];
  window.Notification = class {
    static permission = "granted";
    constructor(...told) { window.shown.push(told); }
    close() {}
  };
  Object.defineProperty(document, "hidden", { get: () => !window.isSeen });
"""
SHOWN = "window.shown"
PRIVATE = "PRIVATE-77"


@pytest_asyncio.fixture(loop_scope="session")
async def hidden(visitor: Visitor) -> Page:
    """A page in the background, of somebody who asked for notifications."""
    await visitor.context.add_init_script(STAND_IN)
    return visitor.page


async def shown(page: Page, count: int) -> list[Any]:
    """What was shown, once it is so much."""
    await comes_true(page, f"{SHOWN}.length >= {count}")
    return list(await page.evaluate(SHOWN))


async def test_it_is_generic(api: Api, visitor: Visitor, hidden: Page):
    await visitor.go("/inbox")
    await api.asked(PRIVATE, title=PRIVATE, description=PRIVATE, payload={PRIVATE: PRIVATE})
    (first,) = await shown(hidden, 1)
    async with asking(api, PRIVATE, unique_id=PRIVATE, options=[PRIVATE, "other"]):
        told = await shown(hidden, 2)
    assert PRIVATE not in json.dumps(told)
    assert "run-1" not in json.dumps(told)
    assert first == ["Holdshort", {"body": "Something waits for your answer.", "tag": "holdshort"}]


async def test_whoever_looks_at_the_page_gets_none(api: Api, visitor: Visitor, hidden: Page):
    await visitor.context.add_init_script("window.isSeen = true")
    await hidden.clock.install()
    await visitor.go("/inbox")
    await api.asked()
    await live(hidden)
    async with asking(api, kind="yes_no"):
        await expect(hidden.locator("article[data-feedback]")).to_be_visible()
        await hidden.clock.run_for(5000)
    assert await hidden.evaluate(SHOWN) == []


async def test_what_is_over_at_once_is_nothing_to_tell(api: Api, visitor: Visitor, hidden: Page):
    await hidden.clock.install()
    await visitor.go("/inbox")
    await expect(hidden).to_have_title("Waiting · Holdshort")
    approval_id = await api.asked()
    await api.decide(approval_id)
    await api.asked("q-2", "run-2")
    await live(hidden)
    await hidden.clock.run_for(5000)
    assert len(await shown(hidden, 1)) == 1


async def test_permission_is_asked_for_by_a_press_only(api: Api, visitor: Visitor):
    await visitor.context.add_init_script(
        """window.asked = 0;
        window.Notification = class {
          static permission = "default";
          static async requestPermission() { window.asked += 1; return (this.permission = "granted"); }
        };"""
    )
    page = await visitor.go("/inbox")
    await api.asked()
    await live(page)
    assert await page.evaluate("window.asked") == 0
    await page.get_by_role("button", name="Keys and notifications").click()
    await page.get_by_role("button", name="Notify me while this page is hidden").click()
    await expect(page.get_by_text("Notifications are on.")).to_be_visible()
    assert await page.evaluate("window.asked") == 1
