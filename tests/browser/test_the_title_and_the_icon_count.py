"""How many wait can be seen without the page: in its title, and by a dot on its icon."""

from playwright.async_api import expect

from tests.app import Api
from tests.browser.cards import send
from tests.browser.conftest import Visitor
from tests.browser.samples import asking


async def test_both_follow_what_comes_and_goes(api: Api, visitor: Visitor):
    page = await visitor.go("/inbox/status")
    icon = page.locator("link[data-favicon]")
    plain = await icon.get_attribute("href")
    await expect(page).to_have_title("Status · Holdshort")
    approval_id = await api.asked()
    await expect(page).to_have_title("(1) Status · Holdshort")
    await expect(icon).not_to_have_attribute("href", plain or "")
    dotted = await icon.get_attribute("href")
    assert dotted is not None
    drawn = await page.evaluate("(href) => fetch(href).then((reply) => reply.headers.get('content-type'))", dotted)
    assert drawn.startswith("image/svg")
    await visitor.go("/inbox")
    async with asking(api, kind="text") as question:
        await expect(page).to_have_title("(2) Waiting · Holdshort")
        await send(page, "493021")
        await question.answer()
        await expect(page).to_have_title("(1) Waiting · Holdshort")
    await api.decide(approval_id)
    await expect(page).to_have_title("Waiting · Holdshort")
    await expect(icon).to_have_attribute("href", plain or "")
