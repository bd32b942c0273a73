"""Everything can be done with keys, and no key that was meant for something else decides anything."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, expect

from tests.app import Api
from tests.browser.conftest import Visitor, live, proof
from tests.browser.deciding import banner, comment, expect_armed, status_of, verdict
from tests.browser.samples import asking

JUST_BEFORE_MS, REST_MS = 590, 20


async def opened(api: Api, visitor: Visitor) -> tuple[str, Page]:
    """An approval's page, long enough ago for keys to count."""
    approval_id = await api.asked()
    await visitor.page.clock.install()
    page = await visitor.go(f"/inbox/{approval_id}")
    await steady(page)
    return approval_id, page


async def steady(page: Page) -> None:
    """Return once keys count on what a page shows."""
    await live(page)
    await page.clock.fast_forward(JUST_BEFORE_MS + REST_MS)


async def test_keys_alone_find_open_and_decide(api: Api, visitor: Visitor):
    ids = [await api.asked(f"q-{n}", f"run-{n}", title=f"Number {n}", expires_in_hours=n) for n in (1, 2)]
    await visitor.page.clock.install()
    page = await visitor.go("/inbox")
    await live(page)
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await expect(page.locator(".ring")).to_have_attribute("data-approval", ids[1])
    await page.keyboard.press("k")
    await expect(page.locator(".ring")).to_have_attribute("data-approval", ids[0])
    await page.keyboard.press("o")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Number 1")
    await steady(page)
    await page.keyboard.press("a")
    await expect_armed(page, "approved")
    assert await status_of(api, ids[0]) == "pending"
    await page.keyboard.press("Control+Enter")
    await expect(banner(page)).to_contain_text("Approved")
    await page.keyboard.press("Escape")
    await expect(page).to_have_url(f"{api.base}/inbox")
    assert [await status_of(api, each) for each in ids] == ["approved", "pending"]


@pytest.mark.parametrize(("key", "word"), [("a", "approved"), proof("c", "request_changes"), proof("r", "rejected")])
async def test_a_key_arms_and_escape_disarms(api: Api, visitor: Visitor, key: str, word: str):
    approval_id, page = await opened(api, visitor)
    await page.keyboard.press(key)
    await expect_armed(page, word)
    await page.keyboard.press("Escape")
    await expect_armed(page, "")
    await expect(page).to_have_url(f"{api.base}/inbox/{approval_id}")
    await page.keyboard.press("Control+Enter")
    await page.reload()
    assert await status_of(api, approval_id) == "pending"
    assert visitor.watch.to(f"/inbox/{approval_id}/decision") == []


async def test_enter_alone_never_approves(api: Api, visitor: Visitor):
    approval_id, page = await opened(api, visitor)
    await page.keyboard.press("Enter")
    await comment(page).press("Enter")
    await page.keyboard.press("Escape")
    await page.keyboard.press("a")
    await expect_armed(page, "approved")
    for _ in range(3):
        await page.keyboard.press("Enter")
    await comment(page).press("Enter")
    await verdict(page, "rejected").focus()
    await page.keyboard.press("Enter")
    await expect_armed(page, "rejected")
    await page.reload()
    assert await status_of(api, approval_id) == "pending"
    assert visitor.watch.to(f"/inbox/{approval_id}/decision") == []


async def test_letters_in_a_field_and_with_modifiers_are_not_keys(api: Api, visitor: Visitor):
    approval_id, page = await opened(api, visitor)
    await comment(page).press_sequentially("arc jok? /")
    await expect(comment(page)).to_have_value("arc jok? /")
    await comment(page).blur()
    for pressed in ("Alt+a", "Shift+Alt+r"):
        await page.keyboard.press(pressed)
    await page.evaluate(
        """document.dispatchEvent(new KeyboardEvent("keydown", {key: "a", isComposing: true, bubbles: true}))"""
    )
    await expect_armed(page, "")
    await page.keyboard.press("a")
    await expect_armed(page, "approved")
    assert await status_of(api, approval_id) == "pending"


async def test_single_keys_can_be_switched_off(api: Api, visitor: Visitor):
    _, page = await opened(api, visitor)
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await page.keyboard.press("a")
    await page.get_by_label("Single keys act on the card with the ring").uncheck()
    await page.get_by_role("button", name="Close").click()
    await expect_armed(page, "")
    await page.keyboard.press("a")
    await page.reload()
    await steady(page)
    await page.keyboard.press("a")
    await expect_armed(page, "")
    await verdict(page, "approved").click()
    await expect_armed(page, "approved")


async def test_nothing_acts_on_what_has_just_appeared(api: Api, visitor: Visitor):
    approval_id = await api.asked()
    page = visitor.page
    await page.clock.install()
    await page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    await visitor.go(f"/inbox/{approval_id}")
    await expect(page.locator("form[data-decide][data-armed]")).to_be_visible()
    await page.clock.run_for(JUST_BEFORE_MS)
    await page.keyboard.press("a")
    await expect_armed(page, "")
    await page.clock.run_for(REST_MS)
    await page.keyboard.press("a")
    await expect_armed(page, "approved")


async def test_a_new_card_takes_no_press_meant_for_what_stood_there(api: Api, visitor: Visitor):
    page = visitor.page
    await page.clock.install()
    await page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=1))
    await visitor.go("/inbox")
    async with asking(api, "Now?", kind="yes_no") as question:
        yes = page.get_by_role("button", name="Yes")
        await expect(yes).to_be_disabled()
        await page.clock.run_for(JUST_BEFORE_MS)
        await expect(yes).to_be_disabled()
        await page.clock.run_for(REST_MS)
        await yes.click()
        assert await question.answer() == "yes"


async def test_search_is_a_key_away(api: Api, visitor: Visitor):
    await api.asked()
    page = await visitor.go("/inbox")
    await live(page)
    await page.keyboard.press("/")
    await expect(page.get_by_label("Search")).to_be_focused()
    await page.keyboard.type("nowhere")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
