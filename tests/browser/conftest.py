"""What the browser tests share: one Chromium a worker, a real served application, and visitors who are watched."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from tests.app import Api, served
from tests.browser import tools
from tests.browser.watching import Watch
from tests.postgres import Database

PATIENCE_MS = 15_000
# A title that says how many wait.
COUNTED = re.compile(r"^\(\d+\) ")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser is bound to the loop it was started in, so all of these tests share one."""
    here = __name__.rpartition(".")[0]
    for item in items:
        if isinstance(item, pytest.Function) and item.module.__name__.startswith(here):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


expect.set_options(timeout=PATIENCE_MS)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The machine's Chromium, started once."""
    path = tools.chromium()
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(executable_path=path, args=tools.arguments())
        yield started
        await started.close()


@pytest_asyncio.fixture(loop_scope="session")
async def api(database: Database) -> AsyncIterator[Api]:
    """An application that is served in open mode, with its workers."""
    async with served(database) as made:
        yield made


class Visitor:
    """One person's window: a fresh context, its page, and what was seen of both."""

    def __init__(self, context: BrowserContext, page: Page, watch: Watch) -> None:
        self.context = context
        self.page = page
        self.watch = watch

    async def go(self, path: str) -> Page:
        """Open a path of the application."""
        await self.page.goto(self.watch.origin + path)
        return self.page


def proof(*values: Any) -> Any:
    """A further form of a test, for the long proofs."""
    return pytest.param(*values, marks=pytest.mark.proof)


async def live(page: Page) -> None:
    """Return once a page's stream has begun, while something waits."""
    await expect(page).to_have_title(COUNTED)


@asynccontextmanager
async def visiting(browser: Browser, origin: str, **options: Any) -> AsyncIterator[Visitor]:
    """A visitor of an application; leaving fails for anything its pages complained of."""
    context = await browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    watch = Watch(origin)
    await watch.follow(context)
    try:
        yield Visitor(context, await context.new_page(), watch)
    finally:
        await context.close()
    assert watch.faults() == []


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser, api: Api) -> AsyncIterator[Visitor]:
    """Somebody with a usual window."""
    async with visiting(browser, api.base) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def page(visitor: Visitor) -> Page:
    """Their page."""
    return visitor.page


@pytest_asyncio.fixture(loop_scope="session")
async def scriptless(browser: Browser, api: Api) -> AsyncIterator[Visitor]:
    """Somebody whose browser runs no script."""
    async with visiting(browser, api.base, java_script_enabled=False) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def other(browser: Browser, api: Api) -> AsyncIterator[Visitor]:
    """Somebody else, at the same time."""
    async with visiting(browser, api.base) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def sql(database: Database) -> AsyncIterator[Any]:
    """A connection of the test's own."""
    connection = await database.connect()
    yield connection
    await connection.close()
