"""A question that would move what is in use is held back, says so where it is seen, and comes when it is called."""

from playwright.async_api import expect

from tests.app import Api
from tests.browser.cards import card
from tests.browser.conftest import Visitor, live
from tests.browser.samples import asking


async def test_it_comes_by_a_press(api: Api, visitor: Visitor):
    await api.asked()
    page = await visitor.go("/inbox")
    await live(page)
    await page.locator("[data-rows] article").hover()
    async with asking(api, "Now?", kind="yes_no") as question:
        call = page.get_by_role("button", name="1 question for now")
        await expect(call).to_be_visible()
        await expect(card(page)).to_have_count(0)
        await call.press("Enter")
        await expect(call).to_be_hidden()
        await card(page).get_by_role("button", name="Yes").click()
        assert await question.answer() == "yes"


async def test_one_that_ended_meanwhile_never_comes(api: Api, visitor: Visitor):
    await api.asked()
    page = await visitor.go("/inbox")
    await live(page)
    await page.locator("[data-rows] article").hover()
    call = page.get_by_role("button", name="1 question for now")
    async with asking(api, "Now?", kind="yes_no"):
        await expect(call).to_be_visible()
    await expect(call).to_be_hidden()
    await page.mouse.move(0, 0)
    async with asking(api, "And now?", unique_id="question-2", kind="yes_no"):
        await expect(card(page, "question-2")).to_be_visible()
        await expect(card(page)).to_have_count(0)
