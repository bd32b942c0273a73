"""A question appears while the page is open, is answered on its card, and the call that waits has the answer."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Route, expect

from tests.app import PATIENCE_SECONDS, Api
from tests.browser.cards import card, field, place, send
from tests.browser.conftest import Visitor, live, proof
from tests.browser.samples import asking


@pytest.mark.parametrize(
    ("fields", "label", "answer"),
    [
        ({"options": ["Aisle", "Window <b>", "Aisle & Window"]}, "Window <b>", "Window <b>"),
        proof({"kind": "yes_no", "yes_label": "Buy it", "no_label": "Leave it"}, "Buy it", "yes"),
        ({"kind": "yes_no", "yes_label": "Buy it", "no_label": "Leave it"}, "Leave it", "no"),
        proof({"kind": "yes_no"}, "No", "no"),
    ],
)
async def test_a_choice_is_one_press(api: Api, visitor: Visitor, fields: dict[str, Any], label: str, answer: str):
    page = await visitor.go("/inbox")
    async with asking(api, "Which one?", **fields) as question:
        await card(page).get_by_role("button", name=label, exact=True).click()
        await expect(card(page)).to_contain_text("Response submitted")
        assert await question.answer() == answer
        assert await card(page).get_by_role("button").count() == 0


async def test_a_text_arrives_as_it_was_typed(api: Api, visitor: Visitor):
    text = "  Gate B\n\n\u201cnorth\u201d <b>side</b> \u00e4\u4e2d\U0001f6eb & more "
    page = await visitor.go("/inbox")
    async with asking(api, "Where?", kind="text") as question:
        await send(page, text)
        assert (await question.answer()).replace("\r\n", "\n") == text
        assert text.strip() not in await page.content()


async def test_two_presses_are_one_answer(api: Api, visitor: Visitor):
    page = await visitor.go("/inbox")
    async with asking(api, "Now?", kind="yes_no") as question:
        await card(page).get_by_role("button", name="Yes").dblclick()
        await expect(card(page)).to_contain_text("Response submitted")
        assert await question.answer() == "yes"
    assert len(visitor.watch.to("/inbox/feedback/")) == 1


async def test_a_lost_reply_is_asked_for_again(api: Api, visitor: Visitor):
    visitor.watch.expect("ERR_FAILED")
    page = await visitor.go("/inbox")
    lost = asyncio.Event()

    async def lose_one(route: Route) -> None:
        if lost.is_set():
            await route.continue_()
        else:
            await route.fetch()
            lost.set()
            await route.abort()

    await page.route("**/answer", lose_one)
    async with asking(api, "Now?", kind="yes_no") as question:
        await card(page).get_by_role("button", name="Yes").click()
        await expect(card(page)).to_contain_text("Response submitted")
        assert await question.answer() == "yes"


async def test_the_reason_of_a_refusal_is_on_the_card(api: Api, visitor: Visitor):
    visitor.watch.expect("422")
    page = await visitor.go("/inbox")
    async with asking(api, "Where?", kind="text") as question:
        await field(page).fill("   ")
        await card(page).get_by_role("button", name="Send").click()
        await expect(card(page).get_by_role("alert")).to_contain_text("empty")
        await send(page, "Gate B")
        assert await question.answer() == "Gate B"


@pytest.mark.parametrize("way", [proof("answered"), "expired", proof("caller gone")])
async def test_a_card_says_how_it_ended_elsewhere(api: Api, visitor: Visitor, sql: Any, way: str):
    page = await visitor.go("/inbox")
    async with asking(api, "Where?", kind="text"):
        await field(page).fill("half typ")
        if way == "answered":
            reply = {"unique_id": "question-1", "response": "Gate B"}
            await api.client.post("/api/human-feedback/submit", json=reply)
        elif way == "expired":
            await sql.execute("UPDATE feedback SET expires_at = clock_timestamp()")
        if way != "caller gone":
            await expect(card(page)).to_contain_text("Answered" if way == "answered" else "Expired, nobody answered")
    if way == "caller gone":
        await expect(card(page)).to_contain_text("Withdrawn")
    await expect(field(page)).to_have_count(0)
    assert "half typ" not in await page.content()


async def test_a_card_that_comes_below_takes_no_press_from_one_above(api: Api, visitor: Visitor):
    page = visitor.page
    await page.clock.install()
    await visitor.go("/inbox")
    async with asking(api, "First?", unique_id="first", kind="text") as first:
        await field(page, "first").fill("done")
        await page.clock.pause_at(datetime.now(UTC) + timedelta(seconds=10))
        async with asking(api, "Second?", unique_id="second", kind="yes_no"):
            await expect(card(page, "second")).to_be_visible()
            await card(page, "first").get_by_role("button", name="Send").click()
            assert await first.answer() == "done"


async def test_two_answer_at_once_and_one_is_taken(api: Api, visitor: Visitor, other: Visitor):
    other.watch.expect("409")
    mine, theirs = await visitor.go("/inbox"), await other.go("/inbox")
    pressed, released = asyncio.Event(), asyncio.Event()

    async def hold(route: Route) -> None:
        pressed.set()
        await released.wait()
        await route.continue_()

    await theirs.route("**/answer", hold)
    async with asking(api, "Now?", kind="yes_no") as question:
        await card(theirs).get_by_role("button", name="No").click()
        await asyncio.wait_for(pressed.wait(), PATIENCE_SECONDS)
        await card(mine).get_by_role("button", name="Yes").click()
        await expect(card(mine)).to_contain_text("Response submitted")
        released.set()
        await expect(card(theirs)).to_contain_text("has its answer")
        await expect(card(theirs)).not_to_contain_text("Response submitted")
        assert await question.answer() == "yes"


async def test_typing_is_never_lost_when_cards_come_and_go(api: Api, visitor: Visitor):
    page = await visitor.go("/inbox")
    async with (
        asking(api, "First?", unique_id="first", kind="text"),
        asking(api, "Second?", unique_id="second", kind="text") as second,
    ):
        await live(page)
        await field(page, "second").press_sequentially("half of ")
        before = await place(field(page, "second"))
        async with asking(api, "Third?", unique_id="third", kind="secret"):
            await expect(card(page, "third")).to_be_visible()
            await expect(field(page, "second")).to_be_focused()
        await expect(card(page, "third")).to_contain_text("Withdrawn")
        await api.client.post("/api/human-feedback/submit", json={"unique_id": "first", "response": "done"})
        await expect(card(page, "first")).to_contain_text("Answered")
        assert await place(field(page, "second")) == before
        await page.keyboard.type("the answer")
        await expect(field(page, "second")).to_be_focused()
        await card(page, "second").get_by_role("button", name="Send").click()
        await expect(card(page, "second")).to_contain_text("Response submitted")
        assert await second.answer() == "half of the answer"
