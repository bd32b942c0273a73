"""What a browser did and said during a test; whatever a test did not expect of it fails the test."""

import asyncio
import json
import re
from typing import NamedTuple
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request, WebError

PATIENCE_SECONDS = 15.0
LOUD = {"error", "warning", "assert"}
# Tells of each violation of the policy, also of those that a console would leave out.
_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.effectiveDirective} refused ${event.blockedURI} at ${event.sourceFile}`);
});"""


class Sent(NamedTuple):
    """One request that a page made."""

    method: str
    url: str
    body: str

    @property
    def path(self) -> str:
        """Its path and query."""
        parts = urlsplit(self.url)
        return parts.path + (f"?{parts.query}" if parts.query else "")


class Watch:
    """Listens to every page of a context."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.sent: list[Sent] = []
        self.said: list[str] = []
        self._expected: list[str] = []

    async def follow(self, context: BrowserContext) -> None:
        """Begin, before the context has a page."""
        context.on("request", self._on_request)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        await context.add_init_script(_VIOLATIONS)

    def expect(self, pattern: str) -> None:
        """Say what a page may complain of in this test; a complaint that never comes fails too."""
        self._expected.append(pattern)

    def faults(self) -> list[str]:
        """Every complaint nobody expected, every expected one that never came, every request to elsewhere."""
        unexpected = [line for line in self.said if not any(re.search(one, line) for one in self._expected)]
        missing = [one for one in self._expected if not any(re.search(one, line) for line in self.said)]
        away = [f"request to {each.url}" for each in self.sent if not self._ours(each.url)]
        return [*unexpected, *(f"never said: {one}" for one in missing), *away]

    def to(self, path: str) -> list[Sent]:
        """The requests whose path begins so."""
        return [each for each in self.sent if each.path.startswith(path)]

    def holding(self, text: str) -> list[Sent]:
        """The requests that carry this text, in their URL or body."""
        return [each for each in self.sent if text in each.url or text in each.body]

    def _ours(self, url: str) -> bool:
        return url.startswith((f"{self.origin}/", "about:blank"))

    def _on_request(self, request: Request) -> None:
        self.sent.append(Sent(request.method, request.url, (request.post_data_buffer or b"").decode(errors="replace")))

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in LOUD:
            self.said.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _on_error(self, error: WebError) -> None:
        self.said.append(f"page error: {error.error}")


async def kept_by(page: Page) -> str:
    """Everything that a page keeps: its document, form values, both storages, address, history state and caches."""
    found = await page.evaluate(
        """async () => ({
          document: document.documentElement.outerHTML,
          values: [...document.querySelectorAll("input, textarea, select")].map((one) => one.value),
          local: {...localStorage},
          session: {...sessionStorage},
          address: location.href,
          state: history.state,
          title: document.title,
          caches: await caches.keys(),
          databases: (await indexedDB.databases()).map((one) => one.name),
          cookies: document.cookie,
          entries: performance.getEntries().map((one) => one.name),
        })"""
    )
    return json.dumps(found)


async def comes_true(page: Page, expression: str) -> None:
    """Return once an expression is true in a page; the browser library's own way needs what the policy forbids."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await page.evaluate(expression):
            await asyncio.sleep(0.02)
