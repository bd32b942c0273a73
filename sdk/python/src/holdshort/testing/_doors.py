"""Both kinds of transport into the testing control plane."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from holdshort._core import Call, Reply
from holdshort._wire import Event
from holdshort.testing import _handlers
from holdshort.testing._visits import Hold

if TYPE_CHECKING:
    from holdshort.testing._plane import ControlPlane

_OPEN = Reply(200, {"content-type": "text/event-stream"}, b"")


def waking(event: asyncio.Event) -> Callable[[], None]:
    """Sets the event on its own loop, from any thread."""
    loop = asyncio.get_running_loop()

    def wake() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(event.set)

    return wake


class AsyncDoor:
    """An AsyncTransport.

    Args:
        plane: that answers.
    """

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    async def exchange(self, call: Call[Any]) -> Reply:
        """Answer, after waiting where the route waits."""
        changed = asyncio.Event()
        with self._plane.listening(waking(changed)):
            answered = self._plane.take(call)
            return answered if isinstance(answered, Reply) else await self._held(answered, changed)

    async def _held(self, hold: Hold, changed: asyncio.Event) -> Reply:
        try:
            async with asyncio.timeout(hold.seconds):
                while not (reply := self._plane.done(hold)):
                    await changed.wait()
                    changed.clear()
                return reply
        except TimeoutError:
            return _handlers.held(hold)

    @asynccontextmanager
    async def stream(self, call: Call[Any]) -> AsyncIterator[tuple[Reply, AsyncIterator[str]]]:
        """The live stream."""
        yield _OPEN, self._lines(call)

    async def _lines(self, call: Call[Any]) -> AsyncIterator[str]:
        news = _News(self._plane, call)
        changed = asyncio.Event()
        with self._plane.listening(waking(changed)):
            while True:
                for line in news.lines():
                    yield line
                await changed.wait()
                changed.clear()

    async def aclose(self) -> None:
        """Nothing is open."""


class Door:
    """A Transport.

    Args:
        plane: that answers.
    """

    def __init__(self, plane: "ControlPlane") -> None:
        self._plane = plane

    def exchange(self, call: Call[Any]) -> Reply:
        """Answer, after waiting where the route waits."""
        changed = threading.Event()
        with self._plane.listening(changed.set):
            answered = self._plane.take(call)
            return answered if isinstance(answered, Reply) else self._held(answered, changed)

    def _held(self, hold: Hold, changed: threading.Event) -> Reply:
        until = time.monotonic() + hold.seconds
        while not (reply := self._plane.done(hold)):
            if not changed.wait(max(0.0, until - time.monotonic())):
                return _handlers.held(hold)
            changed.clear()
        return reply

    @contextmanager
    def stream(self, call: Call[Any]) -> Iterator[tuple[Reply, Iterator[str]]]:
        """The live stream."""
        yield _OPEN, self._lines(call)

    def _lines(self, call: Call[Any]) -> Iterator[str]:
        news = _News(self._plane, call)
        changed = threading.Event()
        with self._plane.listening(changed.set):
            while True:
                yield from news.lines()
                changed.wait()
                changed.clear()

    def close(self) -> None:
        """Nothing is open."""


class _News:
    """What one reader of a live stream has not been told yet."""

    def __init__(self, plane: "ControlPlane", call: Call[Any]) -> None:
        self._plane = plane
        self._call = call
        self._feedback = call.path.endswith("/human-feedback/events")
        self._place: int | None = None
        self._last = None if self._feedback else _first(plane, call)

    def lines(self) -> list[str]:
        """What happened since the last time, as it is written."""
        if self._feedback:
            events, self._place = self._plane.feedback_events_after(self._place)
            return list(chain.from_iterable(_lines_of(event) for event in events))
        events = self._plane.events_after(self._last)
        self._last = events[-1].id if events else self._last
        return list(chain.from_iterable(_written(self._call, event) for event in events))


def _first(plane: "ControlPlane", call: Call[Any]) -> str | None:
    if dict(call.query).get("from") == "now":
        events = plane.events_after(None)
        return events[-1].id if events else None
    return call.headers.get("last-event-id")


def _written(call: Call[Any], event: Event) -> list[str]:
    wanted = dict(call.query)
    if wanted.get("execution_id", event.data["execution_id"]) != event.data["execution_id"]:
        return []
    if "types" in wanted and event.type not in wanted["types"].split(","):
        return []
    return [f"id: {event.id}", *_lines_of(event)]


def _lines_of(event: Event) -> list[str]:
    return [f"event: {event.type}", f"data: {msgspec.json.encode(event.data).decode()}", ""]
