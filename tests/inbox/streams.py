"""An open page's stream as a test reads it: real bytes on a real connection, one event at a time."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import httpx

from tests.app import PATIENCE_SECONDS


class Event(NamedTuple):
    """One event: its name and what it says."""

    name: str
    data: Any


class Stream:
    """An open stream."""

    def __init__(self, reply: httpx.Response) -> None:
        self.reply = reply
        self._events = self._read()

    async def _read(self) -> AsyncIterator[Event]:
        name = ""
        async for line in self.reply.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: ") and name != "beat":
                yield Event(name, json.loads(line.removeprefix("data: ")))

    async def next(self, *names: str) -> Event:
        """The next event, or the next of these names."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for event in self._events:
                if not names or event.name in names:
                    return event
        raise EOFError

    async def until(self, name: str, **fields: Any) -> list[Event]:
        """Every event up to the first of this name that says this."""
        seen = [await self.next()]
        while seen[-1].name != name or not fields.items() <= seen[-1].data.items():
            seen.append(await self.next())
        return seen

    async def rest(self) -> list[Event]:
        """Every event until the server ends the stream."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return [event async for event in self._events]


@asynccontextmanager
async def watching(client: httpx.AsyncClient, **headers: str) -> AsyncIterator[Stream]:
    """A stream that has begun."""
    async with client.stream("GET", "/inbox/events", headers=headers) as reply:
        assert reply.status_code == 200, await reply.aread()
        assert reply.headers["content-type"].startswith("text/event-stream")
        yield Stream(reply)


@asynccontextmanager
async def crowd(bases: list[str], each: int) -> AsyncIterator[list[Stream]]:
    """As many streams at each address, all begun: their first event was read."""
    async with AsyncExitStack() as stack:
        options: dict[str, Any] = {"limits": httpx.Limits(max_connections=None), "timeout": 60, "trust_env": False}
        clients = [await stack.enter_async_context(httpx.AsyncClient(base_url=base, **options)) for base in bases]
        streams = [await stack.enter_async_context(watching(client)) for client in clients for _ in range(each)]
        assert {(await stream.next()).name for stream in streams} == {"hello"}
        yield streams
