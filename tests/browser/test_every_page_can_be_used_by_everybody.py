"""Every page and state under the checker of accessibility, by day and by night, and on the narrowest phone."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from tests.app import Api, served
from tests.browser import tools
from tests.browser.conftest import Visitor, live, visiting
from tests.browser.deciding import arm, status_of
from tests.browser.states import EMPTY, furnish
from tests.figures import Figures
from tests.keys import keep_keys
from tests.postgres import Database

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
NARROW = {"width": 320, "height": 568}

# What is wrong, as the checker says it, with the first place where it is.
CHECK = """(only) => axe.run(document, only).then((found) => found.violations.map((one) =>
  `${one.id}: ${one.nodes[0].target} ${one.nodes[0].failureSummary.replace(/\\s+/g, " ")}`))"""

# What runs out of the window, and what a thumb would miss; a link within a sentence may be as small as its text.
TIGHT = """() => {
  const width = document.scrollingElement.scrollWidth;
  const wide = width > innerWidth ? [`${width} px`] : [];
  const small = (one) => {
    const target = one.closest("label") ?? one;
    const after = getComputedStyle(one, "::after");
    const box = after.position === "absolute" ? one.closest("article").getBoundingClientRect()
                                              : target.getBoundingClientRect();
    const seen = one.checkVisibility({visibilityProperty: true}) && box.width > 2;
    return seen && (box.height < 43.5 || box.width < 43.5);
  };
  const targets = "button, input:not([type=hidden]), textarea, select, summary, h2 a, nav a";
  return [...wide, ...[...document.querySelectorAll(targets)].filter(small).map((one) => one.outerHTML.slice(0, 120))];
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def full(api: Api, sql: Any) -> AsyncIterator[dict[str, str]]:
    """The paths of everything, once what was due has expired."""
    async with AsyncExitStack() as stack:
        paths = await furnish(api, sql, stack)
        while await status_of(api, paths["expired"].rpartition("/")[2]) == "pending":
            pass
        yield paths


async def faults(page: Page, axe: str) -> list[str]:
    """What the checker finds: everything by day, and by night what depends on colours."""
    await page.evaluate(axe)
    await page.emulate_media(color_scheme="light", reduced_motion="reduce")
    day = await page.evaluate(CHECK, {"runOnly": TAGS})
    await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    night = await page.evaluate(CHECK, {"runOnly": {"type": "rule", "values": ["color-contrast"]}})
    return [*day, *(f"night: {each}" for each in night)]


@pytest.mark.timeout(400)
async def test_the_checker_finds_nothing(api: Api, visitor: Visitor, full: dict[str, str], figures: Figures):
    axe, found = tools.axe(), {}
    page = visitor.page
    for name, path in full.items():
        await visitor.go(path)
        found[name] = await faults(page, axe)
    await visitor.go(full["text"])
    await arm(page, "rejected")
    found["armed"] = await faults(page, axe)
    await live(page)
    await api.decide(full["text"].rpartition("/")[2])
    await expect(page.locator("[data-banner]:visible")).to_be_visible()
    found["settled while open"] = await faults(page, axe)
    await page.get_by_role("button", name="Keys and notifications").click()
    found["help"] = await faults(page, axe)
    visitor.watch.expect("404")
    await visitor.go("/inbox/apr_00000000000000000000000000")
    found["fault"] = await faults(page, axe)
    figures("Pages under the checker of accessibility, by day and by night", pages=len(found))
    assert [f"{name}: {each}" for name, all_of_it in found.items() for each in all_of_it] == []


async def test_the_checker_finds_nothing_where_nothing_is(visitor: Visitor, browser: Browser, database: Database):
    axe, found = tools.axe(), {}
    for name, path in EMPTY.items():
        await visitor.go(path)
        found[name] = await faults(visitor.page, axe)
    await visitor.page.goto("about:blank")
    await keep_keys(database)
    async with served(database, open_mode=False) as closed, visiting(browser, closed.base) as stranger:
        await stranger.go("/inbox")
        found["sign in"] = await faults(stranger.page, axe)
    assert [f"{name}: {each}" for name, all_of_it in found.items() for each in all_of_it] == []


async def test_a_phone_shows_all_of_it(browser: Browser, api: Api, full: dict[str, str]):
    async with visiting(browser, api.base, viewport=NARROW, has_touch=True, is_mobile=True) as visitor:
        page, found = visitor.page, {}
        for name, path in full.items():
            await visitor.go(path)
            found[name] = await page.evaluate(TIGHT)
        await visitor.go(full["change"])
        await arm(page, "approved")
        found["armed"] = await page.evaluate(TIGHT)
        await fits(page)
    assert [f"{name}: {each}" for name, all_of_it in found.items() for each in all_of_it] == []


async def fits(page: Page) -> None:
    """The verdicts are within the window, and far enough from each other for a thumb."""
    boxes = [await each.bounding_box() for each in await page.locator("button[name=verdict]:visible").all()]
    found = sorted((box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]) for box in boxes if box)
    assert len(found) == 3
    assert all(top >= 0 and bottom <= NARROW["height"] for _, top, _, bottom in found), found
    assert all(nxt[0] - one[2] >= 15.5 for one, nxt in pairwise(found)), found
