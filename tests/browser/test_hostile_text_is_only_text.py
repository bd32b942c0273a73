"""Whatever an agent writes is shown as the text it is: no markup, no script, no link but to the web, nothing hidden."""

from playwright.async_api import Page, expect

from tests.app import Api
from tests.browser.conftest import Visitor
from tests.browser.samples import HOSTILE, asking

# Names of fields, titles, words and payloads: each place that an agent fills in.
PLACES = {
    "title": HOSTILE[:190],
    "description": HOSTILE,
    "payload": {HOSTILE: HOSTILE, "before": {"a": HOSTILE}, "after": {"a": "</del>" + HOSTILE}, "list": [HOSTILE]},
}


async def harmless(page: Page, *, shows: str | None = "onerror=") -> None:
    """Nothing of it became part of the page, and it is there to be read."""
    await expect(page.locator("main")).to_be_visible()
    if shows:
        await expect(page.get_by_text(shows).first).to_be_attached()
    assert await page.locator("img, main script, main svg, iframe").count() == 0
    assert "owned" not in (await page.title()).split(" · ")[1]
    links = await page.eval_on_selector_all("a[href]", "(all) => all.map((one) => one.href)")
    assert all(link.startswith(("http:", "https:")) for link in links)
    assert "\u202e" not in await page.inner_text("body")
    assert "49" not in await page.get_by_text("{{ 7 * 7 }}").first.inner_text() if shows else True


async def test_an_approval_of_hostile_text(api: Api, visitor: Visitor):
    await api.post("/executions", {"node_id": "node-1", "execution_id": "run-1", "input": PLACES["payload"]})
    approval_id = (await api.ask("q-1", "run-1", **PLACES))["approval_id"]
    await api.post("/executions/run-1/notes", {"message": HOSTILE, "tags": ["<b>tag</b>"]})
    for path in ("/inbox", f"/inbox/{approval_id}", "/inbox/executions/run-1"):
        await harmless(await visitor.go(path))
    visitor.watch.expect("404|400")
    await visitor.go(f"/inbox/{approval_id}%3Cscript%3E")
    await harmless(visitor.page, shows=None)


async def test_a_link_says_where_it_leads(api: Api, visitor: Visitor):
    approval_id = await api.asked(
        description="See https://example.com/a?b=1 and javascript:alert(1) and data:text/html,a"
    )
    page = await visitor.go(f"/inbox/{approval_id}")
    links = page.locator("main a[href^='http']").filter(has_text="example.com")
    await expect(links).to_have_attribute("href", "https://example.com/a?b=1")
    await expect(links).to_have_attribute("rel", "noopener noreferrer")
    assert await page.locator("main a[href^='javascript:'], main a[href^='data:']").count() == 0


async def test_a_question_of_hostile_text(api: Api, visitor: Visitor):
    page = await visitor.go("/inbox")
    options = ["<b>bold</b>", "javascript:a()", "plain"]
    async with asking(api, HOSTILE, options=options) as question:
        await harmless(page)
        await page.get_by_role("button", name="<b>bold</b>").click()
        assert await question.answer() == "<b>bold</b>"


async def test_what_a_person_writes_is_shown_as_text_too(api: Api, visitor: Visitor):
    approval_id = await api.asked()
    await api.decide(approval_id, "rejected", feedback=HOSTILE)
    for path in (f"/inbox/{approval_id}", "/inbox/executions/run-1"):
        await harmless(await visitor.go(path))


async def test_search_words_come_back_as_text(api: Api, visitor: Visitor):
    await api.asked()
    page = await visitor.go("/inbox?q=%3Cimg%20src%3Dx%20onerror%3Da()%3E&node=%3Cb%3E")
    await harmless(page, shows=None)
    await expect(page.get_by_label("Search")).to_have_value("<img src=x onerror=a()>")
