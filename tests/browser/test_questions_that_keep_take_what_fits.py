"""A durable question is answered on its page: what does not fit is said beside its field, and nothing typed is lost."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.app import Api
from tests.browser.conftest import Visitor, proof
from tests.browser.deciding import arm, banner, status_of, verdict
from tests.browser.states import FORM


async def values(api: Api) -> Any:
    """What the agent of the run is told."""
    reply = (await api.get("/executions/run-1/approval-status")).json()
    return reply["response"]["data"]["values"]


async def answer(page: Page) -> None:
    """Answer in two presses, and see it stand."""
    await arm(page, "approved")
    await verdict(page, "approved").click()
    await expect(banner(page)).to_contain_text("Answered")


async def test_a_form_is_filled_in(api: Api, visitor: Visitor):
    visitor.watch.expect("422")
    approval_id = await api.asked(title="How much back?", form=FORM)
    page = await visitor.go(f"/inbox/{approval_id}")
    amount = page.get_by_label("Amount")
    await amount.fill("twelve")
    await page.get_by_label("goodwill").check()
    await arm(page, "approved")
    await verdict(page, "approved").click()
    await expect(amount).to_have_attribute("aria-invalid", "true")
    await expect(amount).to_have_value("twelve")
    await expect(page.get_by_label("goodwill")).to_be_checked()
    assert await status_of(api, approval_id) == "pending"
    await amount.fill("12.50")
    await answer(page)
    found = await values(api)
    assert (found["amount"], found["reason"]) == (12.5, "goodwill")


@pytest.mark.parametrize("script", [proof("with script"), "without script"])
async def test_a_choice_is_made(api: Api, visitor: Visitor, scriptless: Visitor, script: str):
    person = visitor if script == "with script" else scriptless
    options = ["Left", "Right <b>"]
    approval_id = await api.asked(title="Which way?", form={"kind": "multiple_choice", "options": options})
    page = await person.go(f"/inbox/{approval_id}")
    await page.get_by_label("Right <b>").check()
    await answer(page)
    assert await values(api) == "Right <b>"
