"""HTTP/1.1 for many connections at once: one socket each, nothing between the test and the bytes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

Item = TypeVar("Item")
Result = TypeVar("Result")

PATIENCE_SECONDS = 30.0
GONE = (OSError, EOFError)


class Reply(NamedTuple):
    """What came back; `body` is its JSON, or its text where it is none."""

    status: int
    body: Any


class Wire:
    """One connection to a server; opened with the first request and again after it broke.

    `send` and `reply` are apart, so that two requests can leave in the same turn of the loop.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)

    def send(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        """Write a request onto the open connection."""
        assert self._streams is not None
        host = "{}:{}".format(*self._address)
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {"Content-Type": "application/json"}).items()]
        self._streams[1].write("\r\n".join([*lines, "\r\n"]).encode() + body)

    async def reply(self, patience: float = PATIENCE_SECONDS) -> Reply:
        """Read the answer; an OSError or EOFError (`GONE`) when the server went away before it was whole."""
        assert self._streams is not None
        try:
            async with asyncio.timeout(patience):
                return await _read(self._streams[0])
        except BaseException:
            await self.close()
            raise

    async def call(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Reply:
        """One request and its answer; `body` is sent as JSON unless it is bytes already."""
        await self.open()
        self.send(method, path, body if isinstance(body, bytes) else encode(body), headers)
        return await self.reply()

    async def close(self) -> None:
        if self._streams is not None:
            writer = self._streams[1]
            self._streams = None
            writer.transport.abort()
            try:
                await writer.wait_closed()
            except OSError:
                return


def encode(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


async def _read(reader: asyncio.StreamReader) -> Reply:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status, _, lines = head.partition("\r\n")
    length = next(int(line[15:]) for line in lines.lower().split("\r\n") if line.startswith("content-length:"))
    raw = await reader.readexactly(length)
    try:
        return Reply(int(status.split()[1]), json.loads(raw))
    except ValueError:
        return Reply(int(status.split()[1]), raw.decode("utf-8", "replace"))


@asynccontextmanager
async def wires(*urls: str) -> AsyncIterator[list[Wire]]:
    """One open connection for each URL."""
    opened = [Wire(url) for url in urls]
    try:
        for wire in opened:
            await wire.open()
        yield opened
    finally:
        for wire in opened:
            await wire.close()


async def in_lanes(
    url: str, items: Iterable[Item], work: Callable[[Wire, Item], Awaitable[Result]], *, lanes: int = 8
) -> list[Result]:
    """Do something for each item over `lanes` connections at once; the results in the order of the items."""
    results: dict[int, Result] = {}
    numbered = iter(enumerate(items))

    async def lane() -> None:
        wire = Wire(url)
        try:
            for number, item in numbered:
                results[number] = await work(wire, item)
        finally:
            await wire.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(lanes):
            group.create_task(lane())
    return [results[number] for number in sorted(results)]
