"""Deciding with the script: two presses, the words reach the agent, and nothing less than that decides."""

from playwright.async_api import Page, expect

from tests.app import Api
from tests.browser.conftest import Visitor
from tests.browser.deciding import arm, banner, comment, confirm, decide, expect_armed, status_of, told, verdict
from tests.browser.samples import MIGRATION, ask

LONG = "\n".join(f"line {number} of the statement" for number in range(400))


async def test_an_approval_is_approved(api: Api, visitor: Visitor):
    approval_id = await ask(api, MIGRATION, "migrate", run="run-1")
    page = await visitor.go("/inbox")
    await page.get_by_role("link", name=MIGRATION["title"]).click()
    for shown in ("orders-production", "212 GB", "187 GB", "ALTER TABLE orders"):
        await expect(page.get_by_text(shown).first).to_be_visible()
    await arm(page, "approved")
    assert await status_of(api, approval_id) == "pending"
    await confirm(page, "approved")
    assert (await told(api))[0] == "approved"
    await page.reload()
    await expect(banner(page)).to_contain_text("Approved")
    await expect(page.locator("form[data-decide]")).to_have_count(0)


async def test_a_no_carries_words(api: Api, visitor: Visitor):
    approval_id = await api.asked()
    page = await visitor.go(f"/inbox/{approval_id}")
    await decide(page, "rejected", "Too dear.\nAsk the supplier for 10 % — “firmly”. \u00e4\u4e2d")
    assert await told(api) == ("rejected", "Too dear.\nAsk the supplier for 10 % — “firmly”. \u00e4\u4e2d")


async def test_the_next_round_says_what_changed(api: Api, visitor: Visitor):
    first = await api.asked("refund", title="Refund", payload={"amount": 900, "order": "88-1203"})
    page = await visitor.go(f"/inbox/{first}")
    await decide(page, "request_changes", "At most 500.")
    assert await told(api) == ("request_changes", "At most 500.")
    payload = {"amount": 480, "order": "88-1203"}
    second = (await api.ask("refund", title="Refund", payload=payload, round=2))["approval_id"]
    await visitor.go(f"/inbox/{second}")
    await expect(page.get_by_text("Round 2").first).to_be_visible()
    await expect(page.get_by_text("At most 500.")).to_be_visible()
    await expect(page.get_by_text("Changed since last time")).to_be_visible()
    await expect(page.locator("del").filter(has_text="900")).to_be_visible()
    await expect(page.locator("ins").filter(has_text="480")).to_be_visible()
    await visitor.go(f"/inbox/{first}")
    await page.get_by_role("link", name="Open round 2").click()
    await decide(page, "approved")
    assert await status_of(api, second) == "approved"


async def test_changes_are_not_requested_without_a_word(api: Api, visitor: Visitor):
    visitor.watch.expect("422")
    approval_id = await api.asked()
    page = await visitor.go(f"/inbox/{approval_id}")
    await arm(page, "request_changes")
    await verdict(page, "request_changes").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await status_of(api, approval_id) == "pending"
    await decide(page, "request_changes", "Say which customers.")


async def test_half_a_double_click_is_no_second_press(api: Api, visitor: Visitor):
    approval_id = await api.asked()
    page = await visitor.go(f"/inbox/{approval_id}")
    await verdict(page, "approved").dblclick()
    await expect_armed(page, "approved")
    await page.reload()
    await expect(verdict(page, "approved")).to_be_visible()
    assert await status_of(api, approval_id) == "pending"


async def test_what_is_folded_is_opened_before_it_is_approved(api: Api, visitor: Visitor):
    approval_id = await api.asked(payload={"statement": LONG})
    page = await visitor.go(f"/inbox/{approval_id}")
    await expect(page.get_by_text("line 399 of the statement")).to_be_hidden()
    await expect(verdict(page, "approved")).to_be_disabled()
    await expect(verdict(page, "rejected")).to_be_enabled()
    await open_all(page)
    await expect(page.get_by_text("line 399 of the statement")).to_be_visible()
    await decide(page, "approved")
    assert await status_of(api, approval_id) == "approved"


async def open_all(page: Page) -> None:
    for fold in await page.locator("details.fold > summary").all():
        await fold.click()
    box = page.get_by_label("I have opened and read all of it")
    if await box.is_visible():
        await box.check()


async def test_what_was_seen_is_what_is_decided(api: Api, visitor: Visitor):
    visitor.watch.expect("409")
    approval_id = await api.asked(payload={"amount": 900})
    page = await visitor.go(f"/inbox/{approval_id}")
    await comment(page).fill("Fine with me.")
    await page.locator("form[data-decide] input[name=digest]").evaluate("(one) => { one.value = '0'.repeat(64) }")
    await arm(page, "approved")
    await verdict(page, "approved").click()
    await expect(page.get_by_text("Nothing was decided")).to_be_visible()
    await expect(comment(page)).to_have_value("Fine with me.")
    await expect_armed(page, "")
    assert await status_of(api, approval_id) == "pending"
