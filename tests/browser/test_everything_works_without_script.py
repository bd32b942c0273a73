"""Forms, redirects and links are enough to decide, to answer and to look: script only adds to them."""

import pytest
from playwright.async_api import expect

from tests.app import Api, until
from tests.browser.conftest import Visitor, proof
from tests.browser.deciding import arm, banner, comment, confirm, expect_armed, status_of, told, verdict
from tests.browser.samples import asking, shown

CODE = "a one-time 493021"


@pytest.mark.parametrize("word", ["approved", proof("rejected"), proof("request_changes")])
async def test_a_verdict_is_given_in_two_presses(api: Api, scriptless: Visitor, word: str):
    approval_id = await api.asked(title="Refund the order")
    page = await scriptless.go("/inbox")
    await page.get_by_role("link", name="Refund the order").click()
    await comment(page).fill("Only the half of it.\nAsk again.")
    await arm(page, word)
    assert await status_of(api, approval_id) == "pending"
    await confirm(page, word)
    assert await told(api) == (word, "Only the half of it.\nAsk again.")


async def test_looking_and_the_first_press_decide_nothing(api: Api, scriptless: Visitor):
    approval_id = await api.asked()
    page = await scriptless.go(f"/inbox/{approval_id}")
    await arm(page, "rejected")
    await verdict(page, "back").click()
    await expect_armed(page, "")
    await arm(page, "approved")
    await page.reload()
    await scriptless.go("/inbox")
    assert await status_of(api, approval_id) == "pending"


async def test_changes_are_not_requested_without_a_word(api: Api, scriptless: Visitor):
    scriptless.watch.expect("422")
    approval_id = await api.asked()
    page = await scriptless.go(f"/inbox/{approval_id}")
    await verdict(page, "request_changes").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(comment(page)).to_have_attribute("aria-invalid", "true")
    assert await status_of(api, approval_id) == "pending"


async def test_whoever_is_late_sees_what_stands_and_keeps_their_words(api: Api, scriptless: Visitor):
    scriptless.watch.expect("409")
    approval_id = await api.asked()
    page = await scriptless.go(f"/inbox/{approval_id}")
    await comment(page).fill("I had something to say.")
    await arm(page, "approved")
    await api.decide(approval_id, "rejected")
    await verdict(page, "approved").click()
    await expect(banner(page)).to_contain_text("Rejected")
    await expect(page.get_by_text("I had something to say.")).to_be_visible()
    assert await status_of(api, approval_id) == "rejected"


@pytest.mark.parametrize(
    ("fields", "label", "answer"),
    [
        ({"options": ["Aisle", "Window <b>"]}, "Window <b>", "Window <b>"),
        proof({"kind": "yes_no", "yes_label": "Buy it", "no_label": "Leave it"}, "Buy it", "yes"),
        proof({"kind": "yes_no", "yes_label": "Buy it", "no_label": "Leave it"}, "Leave it", "no"),
    ],
)
async def test_a_choice_is_one_press(api: Api, scriptless: Visitor, fields: dict[str, object], label: str, answer: str):
    async with asking(api, "Which one?", **fields) as question:
        page = await scriptless.go("/inbox")
        await page.get_by_role("button", name=label).click()
        await expect(page.get_by_role("heading", name="Response submitted")).to_be_visible()
        assert await question.answer() == answer


@pytest.mark.parametrize("kind", [proof("text"), "secret"])
async def test_what_is_typed_reaches_the_call_that_waits(api: Api, scriptless: Visitor, kind: str):
    async with asking(api, kind=kind) as question:
        page = await scriptless.go("/inbox")
        await page.locator("[name=response]").fill(CODE)
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_role("heading", name="Response submitted")).to_be_visible()
        assert CODE not in await page.content()
        assert CODE not in page.url
        assert await question.answer() == CODE
    await until(lambda: shown(api) == [])


async def test_a_late_answer_is_told_how_it_ended(api: Api, scriptless: Visitor):
    scriptless.watch.expect("410")
    async with asking(api, kind="text"):
        page = await scriptless.go("/inbox")
        await page.locator("[name=response]").fill(CODE)
    await until(lambda: shown(api) == [])
    await page.get_by_role("button", name="Send").click()
    await expect(page.get_by_role("heading", name="Withdrawn")).to_be_visible()
    assert CODE not in await page.content()
