import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from controlplane.http import events
from tests.app import Api, served
from tests.postgres import Database

INSERT = """
    INSERT INTO history (type, actor_kind, actor_name, actor_via, data)
    VALUES ($1, 'system', 'test', 'test', '{}')
"""
LAST = "test.last"


class Event(NamedTuple):
    id: str
    type: str
    data: dict[str, Any]


class Events:
    """A stream that is read event by event."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def lines(self) -> list[str]:
        """The lines of the next block."""
        found: list[str] = []
        async with asyncio.timeout(10):
            async for line in self._lines:
                if not line and found:
                    return found
                found += [line] if line else []
        raise EOFError

    async def next(self) -> Event:
        while True:
            fields = dict(line.split(": ", 1) for line in await self.lines() if not line.startswith(":"))
            if fields:
                return Event(fields["id"], fields["event"], json.loads(fields["data"]))

    async def until(self, last: str) -> list[Event]:
        """Everything up to the first event of a type."""
        found = [await self.next()]
        while found[-1].type != last:
            found.append(await self.next())
        return found


@asynccontextmanager
async def stream(api: Api, last_event_id: str | None = None, **query: str) -> AsyncIterator[Events]:
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    async with api.client.stream("GET", "/api/v1/events", params=query, headers=headers) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        yield Events(reply.aiter_lines())


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with served(database) as made:
        yield made


async def kept(sql: Any) -> list[str]:
    return [row["type"] for row in await sql.fetch("SELECT type FROM history ORDER BY xid, seq")]


async def test_every_row_is_sent_in_order_from_the_beginning(api: Api, sql: Any):
    approval = await api.asked(title="Sign?")
    await api.decide(approval, feedback="yes")
    async with stream(api) as events_:
        await sql.execute(INSERT, LAST)
        found = await events_.until(LAST)
    assert [event.type for event in found] == await kept(sql)
    assert len({event.id for event in found}) == len(found)
    decided = next(event for event in found if event.type == "approval.approved")
    assert (decided.data["approval_id"], decided.data["execution_id"]) == (approval, "run-1")
    assert decided.data["actor_kind"] == "person"


async def test_it_goes_on_where_another_ended_without_gap_or_double(api: Api, sql: Any):
    seen: list[Event] = []
    for number in range(3):
        approval = await api.asked("q", f"run-{number}")
        async with stream(api, seen[-1].id if seen else None) as events_:
            seen.append(await events_.next())
            await api.decide(approval)
            seen.append(await events_.next())
    await sql.execute(INSERT, LAST)
    async with stream(api, seen[-1].id) as events_:
        seen += await events_.until(LAST)
    assert [event.type for event in seen] == await kept(sql)


async def test_filters_leave_out_and_keep_the_order(api: Api, sql: Any):
    for execution in ("run-1", "run-2"):
        await api.decide(await api.asked("q", execution))
    await sql.execute(INSERT, LAST)
    async with stream(api, types=f"approval.approved,{LAST}") as events_:
        found = await events_.until(LAST)
        assert [event.data["execution_id"] for event in found] == ["run-1", "run-2", None]
        await api.decide(await api.asked("q", "run-3"))
        assert (await events_.next()).data["execution_id"] == "run-3"
    async with stream(api, found[0].id, execution_id="run-2", types="approval.approved") as events_:
        assert (await events_.next()).data["execution_id"] == "run-2"


async def test_from_now_begins_at_the_end(api: Api):
    await api.decide(await api.asked())
    async with stream(api, **{"from": "now"}) as events_:
        assert (await events_.lines())[0].startswith(":")
        await api.start("run-2")
        assert (await events_.next()).data["execution_id"] == "run-2"


async def test_an_earlier_row_of_a_slow_transaction_is_not_skipped(api: Api, sql: Any):
    async with stream(api, **{"from": "now"}) as events_:
        await events_.lines()
        async with sql.transaction():
            await sql.execute(INSERT, "test.slow")
            await api.start()
            coming = asyncio.create_task(events_.next())
            await api.start("run-2")
            assert (await api.client.get("/health/ready")).status_code == 200
            assert not coming.done()
        found = [await coming, await events_.next(), await events_.next()]
    assert [event.type for event in found] == await kept(sql)
    assert found[0].type == "test.slow"


async def test_many_streams_all_see_it(api: Api):
    approval = await api.asked()

    async def one() -> str:
        async with stream(api, types="approval.approved") as events_:
            await events_.lines()
            opened.release()
            return str((await events_.next()).data["approval_id"])

    opened = asyncio.Semaphore(0)
    streams = [asyncio.create_task(one()) for _ in range(40)]
    for _ in streams:
        await opened.acquire()
    await api.decide(approval)
    assert await asyncio.gather(*streams) == [approval] * 40


async def test_a_quiet_stream_shows_that_it_lives(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(events, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(events, "KEEPALIVE_SECONDS", 0.02)
    async with stream(api) as events_:
        assert [await events_.lines() for _ in range(3)] == [[": holdshort"], [": still here"], [": still here"]]


async def test_it_ends_when_the_server_stops(api: Api):
    async with stream(api) as events_:
        await events_.lines()
        api.runtime.stop()
        with pytest.raises(EOFError):
            await events_.lines()
