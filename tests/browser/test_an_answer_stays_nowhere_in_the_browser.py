"""A code that was typed is in one request and nowhere else: not on the page, in storage, in an address or on disk."""

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.app import Api
from tests.browser import tools
from tests.browser.cards import card, field, send
from tests.browser.conftest import Visitor, proof
from tests.browser.samples import asking
from tests.browser.watching import Watch, kept_by

CODE = "KX-493021-QJ"


async def test_a_secret_is_masked_and_asked_for_as_a_one_time_code(api: Api, visitor: Visitor):
    page = await visitor.go("/inbox")
    async with asking(api, kind="secret"):
        await field(page).fill(CODE)
        await expect(field(page)).to_have_css("-webkit-text-security", "disc")
        await expect(field(page)).to_have_attribute("autocomplete", "one-time-code")
        await expect(field(page)).to_have_attribute("type", "text")
        show = card(page).get_by_role("button", name="Show")
        await show.click()
        await expect(field(page)).to_have_css("-webkit-text-security", "none")
        await card(page).get_by_role("button", name="Hide").click()
        await expect(field(page)).to_have_css("-webkit-text-security", "disc")


@pytest.mark.parametrize("kind", ["secret", proof("text")])
async def test_nothing_of_the_page_holds_it(api: Api, visitor: Visitor, kind: str):
    page = await visitor.go("/inbox")
    async with asking(api, kind=kind) as question:
        await send(page, CODE)
        assert await question.answer() == CODE
    assert CODE not in await kept_by(page)
    assert [each.path for each in visitor.watch.holding(CODE)] == ["/inbox/feedback/question-1/answer"]
    await page.reload()
    await page.go_back()
    await page.go_forward()
    assert CODE not in await kept_by(page)
    assert len(visitor.watch.holding(CODE)) == 1


async def test_what_was_half_typed_is_gone_with_the_page(api: Api, visitor: Visitor):
    page = await visitor.go("/inbox")
    async with asking(api, kind="secret"):
        await field(page).fill(CODE)
        await visitor.go("/inbox/status")
        assert CODE not in await kept_by(page)
        await page.go_back()
        await expect(field(page)).to_be_visible()
        await expect(field(page)).to_have_value("")
    assert visitor.watch.holding(CODE) == []


@pytest.mark.parametrize("script", [True, proof(False)])
async def test_the_profile_on_disk_does_not_hold_it(api: Api, browser: Browser, tmp_path: Path, script: bool):
    watch = Watch(api.base)
    context = await browser.browser_type.launch_persistent_context(
        tmp_path,
        executable_path=tools.chromium(whole=True),
        args=tools.arguments(),
        java_script_enabled=script,
    )
    await watch.follow(context)
    page = context.pages[0]
    async with asking(api, kind="secret") as question:
        await page.goto(f"{api.base}/inbox?q=seen-on-disk")
        if script:
            await send(page, CODE)
        else:
            await field(page).fill(CODE)
            await card(page).get_by_role("button", name="Send").click()
            await expect(page.get_by_role("heading", name="Response submitted")).to_be_visible()
        assert await question.answer() == CODE
        await page.goto(f"{api.base}/inbox/status")
    await context.close()
    assert watch.faults() == []
    assert holding(tmp_path, CODE) == []
    # What was visited is there, so a profile is what was searched.
    assert holding(tmp_path, "seen-on-disk") != []


def holding(folder: Path, text: str) -> list[str]:
    """The files below a folder that hold a text, in either spelling that a browser uses."""
    spellings = [text.encode(), text.encode("utf-16-le")]
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [str(path) for path in files if any(each in path.read_bytes() for each in spellings)]
