"""What comes while a person is at work takes no focus, opens nothing and moves nothing; it comes when they ask."""

from playwright.async_api import Locator, Page, expect

from tests.app import Api
from tests.browser.cards import card, place
from tests.browser.conftest import Visitor, live
from tests.browser.samples import asking


def row(page: Page, approval_id: str) -> Locator:
    return page.locator(f"[data-rows] article[data-approval={approval_id}]")


async def test_new_rows_wait_until_they_are_asked_for(api: Api, visitor: Visitor):
    here = await api.asked("q-1", "run-1", title="The one that stands", expires_in_hours=5)
    page = await visitor.go("/inbox")
    await live(page)
    await row(page, here).get_by_role("link").focus()
    before = await place(row(page, here))
    # Both are due sooner, so they would stand above it.
    first = await api.asked("q-2", "run-2", title="Sooner", expires_in_hours=1)
    await expect(page.get_by_role("button", name="1 new")).to_be_visible()
    second = await api.asked("q-3", "run-3", title="Soonest", expires_in_hours=0.5)
    merge = page.get_by_role("button", name="2 new")
    await expect(merge).to_be_visible()
    await expect(row(page, here).get_by_role("link")).to_be_focused()
    await expect(row(page, first)).to_have_count(0)
    assert await place(row(page, here)) == before
    await merge.click()
    await expect(merge).to_be_hidden()
    order = [await each.get_attribute("data-approval") for each in await page.locator("[data-rows] article").all()]
    assert order == [second, first, here]


async def test_a_question_waits_while_the_pointer_is_on_the_list(api: Api, visitor: Visitor):
    here = await api.asked()
    page = await visitor.go("/inbox")
    await live(page)
    await row(page, here).hover()
    before = await place(row(page, here))
    async with asking(api, "Now?", kind="yes_no"):
        await expect(page.locator("[data-announce]")).to_contain_text("waits")
        await expect(card(page)).to_have_count(0)
        assert await place(row(page, here)) == before
        await page.mouse.move(0, 0)
        await expect(card(page)).to_be_visible()


async def test_a_row_that_ends_stays_where_it_is(api: Api, visitor: Visitor):
    ids = [await api.asked(f"q-{n}", f"run-{n}", title=f"Number {n}", expires_in_hours=n) for n in (1, 2, 3)]
    page = await visitor.go("/inbox")
    await live(page)
    await row(page, ids[2]).get_by_role("link").focus()
    before = [await place(row(page, each)) for each in ids]
    await api.decide(ids[0])
    await expect(row(page, ids[0])).to_contain_text("Approved")
    await expect(row(page, ids[2]).get_by_role("link")).to_be_focused()
    assert [await place(row(page, each)) for each in ids] == before


async def test_an_open_approval_is_not_left_for_another(api: Api, visitor: Visitor):
    approval_id = await api.asked(title="The one that is read")
    page = await visitor.go(f"/inbox/{approval_id}")
    await live(page)
    comment = page.get_by_label("Comment for the agent")
    await comment.press_sequentially("while I ")
    before = await place(comment)
    await api.asked("q-2", "run-2")
    async with asking(api, "Now?", kind="yes_no"):
        await expect(page).to_have_title("(3) The one that is read · Holdshort")
        await expect(comment).to_be_focused()
        assert await place(comment) == before
        assert await page.locator("dialog[open]").count() == 0
        await page.keyboard.type("type")
        await expect(comment).to_have_value("while I type")


async def test_the_page_stays_where_it_is_while_a_comment_is_typed(api: Api, visitor: Visitor):
    lines = {f"field {number}": "value" for number in range(24)}
    approval_id = await api.asked(title="A long one", payload=lines, description="Why.\n" * 20)
    page = await visitor.go(f"/inbox/{approval_id}")
    comment = page.get_by_label("Comment for the agent")
    box = await comment.bounding_box()
    assert box is not None
    await page.mouse.click(box["x"] + 20, box["y"] + 10)
    await page.keyboard.type("Go ahead")
    await expect(comment).to_have_value("Go ahead")
    assert await page.evaluate("scrollY") == 0
    # What gets the focus by keys is never behind the bar.
    for _ in range(4):
        await page.keyboard.press("Shift+Tab")
        assert await page.evaluate(
            """() => {
              const one = document.activeElement.getBoundingClientRect();
              const bar = document.querySelector(".bar");
              return bar.contains(document.activeElement) || one.bottom <= bar.getBoundingClientRect().top;
            }"""
        )
