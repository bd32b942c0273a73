"""The watch itself: what it must see is planted here."""

import pytest
from playwright.async_api import Browser

from tests.app import Api, until
from tests.browser import tools
from tests.browser.conftest import Visitor, proof, visiting


async def test_a_quiet_page_has_no_faults(visitor: Visitor):
    await visitor.go("/health/live")
    assert [each.path for each in visitor.watch.sent] == ["/health/live"]


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ("console.error('a fault')", "a fault"),
        proof("console.warn('a worry')", "a worry"),
        proof("setTimeout(() => { throw new Error('not caught') })", "not caught"),
        ("setTimeout(() => Promise.reject(new Error('no one waits')))", "no one waits"),
        ("document.body.append(Object.assign(document.createElement('img'), {src: '/nowhere'}))", "policy: img-src"),
        proof("location.assign('/nowhere')", "404"),
        ("document.body.append(Object.assign(document.createElement('img'), {src: 'http://[::1]:9/a'}))", "::1"),
    ],
)
async def test_a_fault_fails_the_test(browser: Browser, api: Api, planted: str, seen: str):
    with pytest.raises(AssertionError, match="assert"):  # noqa: PT012
        async with visiting(browser, api.base) as visitor:
            page = await visitor.go("/health/live")
            await page.evaluate(planted)
            await until(lambda: any(seen in fault for fault in visitor.watch.faults()))


async def test_the_checker_runs_under_any_policy(visitor: Visitor):
    source = tools.axe()
    page = await visitor.go("/health/live")
    await page.evaluate(source)
    assert "violations" in await page.evaluate("axe.run()")
