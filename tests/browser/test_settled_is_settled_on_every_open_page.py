"""Whoever ends it, wherever: each open page says so at once, takes its buttons away and keeps what was typed."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.app import PATIENCE_SECONDS, Api
from tests.browser.conftest import Visitor, live, proof
from tests.browser.deciding import arm, banner, comment, decide, status_of, verdict

WORDS = "I was not done with typing."


async def opened(visitor: Visitor, approval_id: str) -> Page:
    """Its page with words half typed, once it is live."""
    page = await visitor.go(f"/inbox/{approval_id}")
    await live(page)
    await comment(page).fill(WORDS)
    return page


async def ended(page: Page, words: str) -> None:
    await expect(banner(page)).to_contain_text(words)
    await expect(page.locator("button[name=verdict]:visible")).to_have_count(0)
    await expect(page.locator("textarea[name=feedback]")).to_have_value(WORDS)


async def test_somebody_else_decides(api: Api, visitor: Visitor, other: Visitor):
    approval_id = await api.asked(title="Refund the order")
    page, theirs = await opened(visitor, approval_id), await other.go("/inbox")
    await live(theirs)
    await api.decide(approval_id, "rejected", feedback="No.")
    await ended(page, "Rejected")
    row = theirs.locator(f"article[data-approval={approval_id}]")
    await expect(row).to_have_attribute("data-status", "rejected")
    await expect(row).to_contain_text("Rejected")
    await expect(row).to_contain_text("Refund the order")


@pytest.mark.parametrize("way", ["expired", proof("withdrawn"), proof("run ended")])
async def test_it_ends_by_itself(api: Api, visitor: Visitor, sql: Any, way: str):
    approval_id = await api.asked()
    page = await opened(visitor, approval_id)
    if way == "expired":
        await sql.execute("UPDATE approvals SET expires_at = clock_timestamp()")
        await ended(page, "Expired")
        await expect(banner(page)).to_contain_text("nobody answered")
        await expect(banner(page)).not_to_contain_text(" by ")
    elif way == "withdrawn":
        await api.post(f"/approvals/{approval_id}/withdraw")
        await ended(page, "Withdrawn")
    else:
        await api.post("/executions/run-1/cancel")
        await ended(page, "Withdrawn")


async def test_two_press_at_once_and_one_of_them_decides(api: Api, visitor: Visitor, other: Visitor):
    other.watch.expect("409")
    approval_id = await api.asked()
    mine, theirs = await opened(visitor, approval_id), await opened(other, approval_id)
    pressed, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        pressed.set()
        await released.wait()
        await route.continue_()

    await theirs.route("**/decision", hold)
    await arm(theirs, "rejected")
    await verdict(theirs, "rejected").click()
    await asyncio.wait_for(pressed.wait(), PATIENCE_SECONDS)
    await decide(mine, "approved")
    released.set()
    await expect(banner(theirs)).to_contain_text("Approved")
    await expect(theirs.get_by_role("alert")).to_contain_text("settled before your answer came")
    await expect(theirs.get_by_role("alert")).to_contain_text(WORDS)
    assert await status_of(api, approval_id) == "approved"


async def test_a_late_press_shows_what_stands(api: Api, visitor: Visitor):
    visitor.watch.expect("409")
    approval_id = await api.asked()
    await visitor.context.route("**/inbox/events", deaf)
    page = await visitor.go(f"/inbox/{approval_id}")
    await comment(page).fill(WORDS)
    await arm(page, "approved")
    await api.decide(approval_id, "rejected")
    await verdict(page, "approved").click()
    await expect(banner(page)).to_contain_text("Rejected")
    await expect(page.get_by_text(WORDS)).to_be_visible()
    await expect(verdict(page, "approved")).to_have_count(0)


async def test_the_same_verdict_twice_is_a_success(api: Api, visitor: Visitor):
    approval_id = await api.asked()
    await visitor.context.route("**/inbox/events", deaf)
    page = await visitor.go(f"/inbox/{approval_id}")
    await arm(page, "approved")
    await api.decide(approval_id, "approved")
    await verdict(page, "approved").click()
    await expect(banner(page)).to_contain_text("Approved")


async def test_a_lost_reply_claims_nothing_and_looks_again(api: Api, visitor: Visitor):
    visitor.watch.expect("ERR_FAILED")
    approval_id = await api.asked()
    await visitor.context.route("**/inbox/events", deaf)
    page = await visitor.go(f"/inbox/{approval_id}")

    async def taken_and_lost(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route("**/decision", taken_and_lost)
    await arm(page, "approved")
    await verdict(page, "approved").click()
    await expect(banner(page)).to_contain_text("Approved")
    assert await status_of(api, approval_id) == "approved"


async def test_a_press_that_never_arrived_may_be_repeated(api: Api, visitor: Visitor):
    visitor.watch.expect("ERR_FAILED")
    approval_id = await api.asked()
    page = await opened(visitor, approval_id)
    await page.route("**/decision", lambda route: route.abort())
    await arm(page, "approved")
    await verdict(page, "approved").click()
    await expect(page.get_by_text("It still waits for an answer.")).to_be_visible()
    assert await status_of(api, approval_id) == "pending"
    await page.unroute("**/decision")
    await verdict(page, "approved").click()
    await expect(banner(page)).to_contain_text("Approved")


async def deaf(route: Route) -> None:
    """A stream that says nothing."""
    await route.fulfill(status=200, content_type="text/event-stream", body="retry: 600000\n\n")
