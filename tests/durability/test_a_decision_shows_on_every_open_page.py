"""200 open pages, 2,000 approvals that wait: whoever decides, wherever, every page is told, once, and soon.

The short form, which counts no time, is `tests/inbox/test_open_pages_are_told_live.py`.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

import pytest

from tests.durability.plane import API, Plane, ask, planes
from tests.durability.wire import PATIENCE_SECONDS, Wire
from tests.figures import Figures
from tests.postgres import Database

PAGES = 200
PENDING = 2_000
DECISIONS = 30
ASKERS = 8
# Changes that are only polled for are seen within a second, and then have their way to go.
SOON_SECONDS = {"on": 1.0, "off": 2.0}

pytestmark = pytest.mark.proof


class OpenPage:
    """One open page: when it was told of each end, in order."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._changed = asyncio.Event()
        self.told: list[tuple[str, float]] = []
        self.waiting = -1

    async def read(self) -> None:
        name = ""
        while line := await self._reader.readline():
            if line.startswith(b"event: "):
                name = line[7:].decode().strip()
            elif line.startswith(b"data: "):
                self._take(name, json.loads(line[6:]))

    async def until(self, ends: int) -> None:
        while len(self.told) < ends:
            self._changed.clear()
            await self._changed.wait()

    def _take(self, name: str, data: dict[str, Any]) -> None:
        if name == "settled":
            self.told.append((data["approval_id"], time.monotonic()))
        if "waiting" in data:
            self.waiting = data["waiting"]
        self._changed.set()


@asynccontextmanager
async def opened(running: list[Plane]) -> AsyncIterator[list[OpenPage]]:
    """As many pages as there are, shared out between the processes, each with what is open before it."""
    pages, readings, writers = [], [], []
    for number in range(PAGES):
        port = running[number % len(running)].port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /inbox/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        pages.append(OpenPage(reader))
        readings.append(asyncio.create_task(pages[-1].read()))
        writers.append(writer)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while any(page.waiting < 0 for page in pages):
                await asyncio.sleep(0.01)
        yield pages
    finally:
        for writer in writers:
            writer.close()
        await asyncio.gather(*readings, return_exceptions=True)


async def ask_many(plane: Plane) -> list[str]:
    """The ids of as many approvals as wait."""

    async def some(first: int) -> list[str]:
        wire = Wire(plane.url)
        asked = [await ask(wire, f"run-{number}", f"q-{number}") for number in range(first, PENDING, ASKERS)]
        await wire.close()
        return [approval["approval_id"] for approval in asked]

    return [each for share in await asyncio.gather(*map(some, range(ASKERS))) for each in share]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("processes", "listen"), [(1, "on"), (2, "on"), (2, "off")])
async def test_every_page_is_told_once_and_soon(database: Database, figures: Figures, processes: int, listen: str):
    with planes(database.url, processes, LISTEN=listen) as running:
        ids = await ask_many(running[0])
        async with opened(running) as pages:
            assert {page.waiting for page in pages} == {PENDING}
            delays = await decide_some(running[-1], ids[:DECISIONS], pages)
            async with asyncio.timeout(PATIENCE_SECONDS):
                while any(page.waiting != PENDING - DECISIONS for page in pages):
                    await asyncio.sleep(0.01)
        for page in pages:
            assert [approval_id for approval_id, _ in page.told] == ids[:DECISIONS]
        figures(
            f"a decision on {PAGES} open pages of {processes} processes with LISTEN {listen}, {PENDING:,} pending",
            seconds_to_the_last_page_at_most=max(delays),
            usually=median(delays),
        )
        assert max(delays) < SOON_SECONDS[listen]


async def decide_some(plane: Plane, ids: list[str], pages: list[OpenPage]) -> list[float]:
    """Decide one after the other; of each, how long after the answer to its decision the last page was told."""
    wire, delays = Wire(plane.url), []
    for number, approval_id in enumerate(ids, 1):
        reply = await wire.call("POST", f"{API}/approvals/{approval_id}/decision", {"decision": "approved"})
        assert reply.status == 200, reply
        answered = time.monotonic()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asyncio.gather(*(page.until(number) for page in pages))
        delays.append(max(page.told[number - 1][1] for page in pages) - answered)
    await wire.close()
    return delays
