import asyncio
import threading
from functools import partial

import pytest
from holdshort import AsyncClient, Client, ConnectionFailed, NotFound, _routes
from holdshort._core import Reply, Unreachable
from holdshort._seals import Lock
from holdshort._stream import Subscription
from holdshort.testing import ControlPlane

from sdk.python.tests.support import Wire, eventually, serving


def subscription(after: str | None = None, patience: float | None = 10.0) -> Subscription:
    make = partial(_routes.event_stream, execution_id="e", types=("a", "b"), from_now=True)
    return Subscription(lambda seen: make(after=seen), after=after, patience=patience)


def test_lines_become_events_and_a_half_read_one_is_dropped() -> None:
    reader = subscription()
    assert reader.call().query == (("execution_id", "e"), ("types", "a,b"), ("from", "now"))
    assert reader.call().headers == {}
    lines = [": comment", "", "id: 7", "event: a", 'data: {"x":', "data:1}", ""]
    events = [event for line in lines if (event := reader.feed(line))]
    assert [(e.id, e.type, e.data) for e in events] == [("7", "a", {"x": 1})]
    reader.feed("id: 8")
    assert reader.call().headers == {"last-event-id": "7"}
    assert "from" not in dict(reader.call().query)
    assert reader.feed("") is None


def test_what_ends_a_stream_and_what_does_not() -> None:
    reader = subscription(patience=1.0)
    with pytest.raises(Unreachable):
        reader.opened(Reply(503, {}, b""))
    with pytest.raises(NotFound):
        reader.opened(Reply(404, {}, b""))
    assert reader.lost(Unreachable("reset"), 100.0, 1.0) == 0.05
    assert reader.lost(Unreachable("reset"), 100.5, 1.0) == 0.1
    with pytest.raises(ConnectionFailed):
        reader.lost(Unreachable("reset"), 101.0, 1.0)


async def test_without_a_gap_through_a_restart(plane: ControlPlane, wire: Wire) -> None:
    seen: list[str] = []

    async def read(url: str) -> None:
        async with AsyncClient(url) as client:
            async for event in client.events(types=["execution.created"]):
                seen.append(event.data["execution_id"])  # noqa: PERF401  # seen as they come

    async with serving(wire) as url:
        reading = asyncio.create_task(read(url))
        plane._book.create("n", "run-1")
        plane._tell()
        await eventually(lambda: seen == ["run-1"])
    plane._book.create("n", "run-2")
    async with serving(wire, int(url.rsplit(":", 1)[1])):
        await eventually(lambda: seen == ["run-1", "run-2"])
        plane._book.create("n", "run-3")
        plane._tell()
        await eventually(lambda: seen == ["run-1", "run-2", "run-3"])
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def test_a_blocking_client_reads_the_same(plane: ControlPlane) -> None:
    with Client(transport=plane.blocking_transport) as client:
        client.create_execution("n", "run-1")
        stream = client.events()
        assert next(stream).type == "execution.created"
        later = threading.Thread(target=client.create_execution, args=("n", "run-2"))
        later.start()
        assert next(stream).data["execution_id"] == "run-2"
        later.join()
        stream.close()  # type: ignore[attr-defined]


async def test_short_lived_questions_are_told_from_those_that_wait_on(plane: ControlPlane, wire: Wire) -> None:
    seen: list[tuple[str, str]] = []

    async def read(url: str) -> None:
        async with AsyncClient(url) as client:
            async for event in client.feedback_events():
                seen.append((event.type.rpartition("_")[2], event.data["request_id"]))  # noqa: PERF401  # seen as they come

    lock = Lock()
    async with AsyncClient(transport=plane.transport) as client:
        await client.ask_feedback("q-1", "Which?", lock.public_key)
        async with serving(wire) as url:
            reading = asyncio.create_task(read(url))
            await eventually(lambda: seen == [("feedback", "q-1")])
            await client.ask_feedback("q-2", "Which?", lock.public_key)
            plane.answer_feedback("q-1", "Red")
            await eventually(lambda: seen[1:] == [("feedback", "q-2"), ("resolved", "q-1")])
        # After a break it begins with what waits.
        async with serving(wire, int(url.rsplit(":", 1)[1])):
            await eventually(lambda: seen[3:] == [("feedback", "q-2")])
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


def test_a_blocking_client_is_told_of_questions_too(plane: ControlPlane) -> None:
    with Client(transport=plane.blocking_transport) as client:
        client.ask_feedback("q-1", "Which?", Lock().public_key, options=["Red"])
        stream = client.feedback_events()
        told = next(stream).data
        assert (told["question"], told["options"], told["context"]) == (
            "Which?",
            ["Red"],
            "This request expires in 300 seconds.",
        )
        client.end_feedback("q-1")
        assert next(stream).data == {"request_id": "q-1", "outcome": "cancelled"}
        stream.close()  # type: ignore[attr-defined]
