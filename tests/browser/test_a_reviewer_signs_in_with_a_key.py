"""Signing in on plain http of this machine: the browser keeps a cookie that is marked for https only."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.app import Api, served
from tests.browser.conftest import Visitor, visiting
from tests.browser.watching import kept_by
from tests.keys import Keys, keep_keys, sent
from tests.postgres import Database

WRONG_KEY = "hs_00000000_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


@pytest_asyncio.fixture(loop_scope="session")
async def keys(database: Database) -> Keys:
    return await keep_keys(database)


@pytest_asyncio.fixture(loop_scope="session")
async def closed(database: Database, keys: Keys) -> AsyncIterator[Api]:
    """An application that nobody uses without a key."""
    async with served(database, open_mode=False) as made:
        made.client.headers.update(sent(keys.agent))
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(browser: Browser, closed: Api) -> AsyncIterator[Visitor]:
    async with visiting(browser, closed.base) as made:
        yield made


async def sign_in(visitor: Visitor, key: str) -> None:
    await visitor.page.get_by_label("Your key").fill(key)
    await visitor.page.get_by_role("button", name="Sign in").click()


async def test_the_page_that_was_wanted_follows(closed: Api, stranger: Visitor, keys: Keys):
    approval_id = await closed.asked(title="Refund the order")
    page = await stranger.go(f"/inbox/{approval_id}")
    await expect(page.get_by_label("Your key")).to_be_focused()
    await sign_in(stranger, keys.review)
    await expect(page).to_have_url(f"{closed.base}/inbox/{approval_id}")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Refund the order")
    await page.reload()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Refund the order")


async def test_the_key_stays_in_one_request(closed: Api, stranger: Visitor, keys: Keys):
    page = await stranger.go("/inbox")
    await sign_in(stranger, keys.review)
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    (cookie,) = await stranger.context.cookies()
    assert (cookie["name"], cookie["secure"], cookie["httpOnly"]) == ("__Host-holdshort", True, True)
    assert (cookie["sameSite"], cookie["path"]) == ("Lax", "/")
    assert [each.path for each in stranger.watch.holding(keys.review)] == ["/inbox/sign-in"]
    kept = await kept_by(page)
    assert keys.review not in kept
    assert cookie["value"] not in kept


async def test_signing_out_ends_it_everywhere(browser: Browser, closed: Api, stranger: Visitor, keys: Keys):
    page = await stranger.go("/inbox")
    await sign_in(stranger, keys.review)
    sign_out = page.get_by_role("button", name="Sign out")
    await expect(sign_out).to_be_visible()
    state = await stranger.context.storage_state()
    await sign_out.click()
    await expect(page.get_by_label("Your key")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_label("Your key")).to_be_visible()
    async with visiting(browser, closed.base, storage_state=state) as thief:
        await thief.go("/inbox")
        await expect(thief.page.get_by_label("Your key")).to_be_visible()


@pytest.mark.parametrize("scope", ["agent", "none"])
async def test_no_other_key_gets_in(stranger: Visitor, keys: Keys, scope: str):
    key, status = (keys.agent, 403) if scope == "agent" else (WRONG_KEY, 401)
    stranger.watch.expect(f"{status}")
    page = await stranger.go("/inbox")
    await sign_in(stranger, key)
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_label("Your key")).to_have_value("")
    assert await stranger.context.cookies() == []
