"""Every history row is streamed once and in order, however transactions overlap."""

import msgspec

from controlplane.domain.events import Fact
from controlplane.storage import history
from controlplane.storage.history import Entry, Position
from tests.factories import AGENT
from tests.services.store import Rows, Store

INSERT = (
    "INSERT INTO history (type, execution_id, actor_kind, actor_name, actor_via, data)"
    " VALUES ($1, 'run-1', 'agent', 'node-1', 'api', '{}')"
)


async def record(store: Store, *types: str) -> None:
    async with store.tx() as conn:
        await history.record(
            conn, *(msgspec.convert({"type": t, "actor": AGENT, "execution_id": "run-1"}, Fact) for t in types)
        )


async def read(store: Store, position: Position | None = None, **which: object) -> list[Entry]:
    async with store.tx() as conn:
        return await history.after(conn, position or Position(), **which)  # type: ignore[arg-type]


def types(entries: list[Entry]) -> list[str]:
    return [entry.type for entry in entries]


def place(entries: list[Entry]) -> Position:
    return Position(entries[-1].xid, entries[-1].seq)


async def test_a_slow_transactions_row_is_never_skipped(store: Store, rows: Rows):
    async with rows.holding(INSERT, "slow"):
        await record(store, "fast")
        assert types(await read(store)) == []
    entries = await read(store)
    assert types(entries) == ["slow", "fast"]
    assert [entry.seq for entry in entries] == sorted(entry.seq for entry in entries)


async def test_order_is_by_transaction_and_a_reader_misses_nothing(store: Store, rows: Rows):
    await record(store, "before")
    seen = await read(store)
    async with rows.sql.transaction():
        await rows.sql.fetchval("SELECT pg_current_xact_id()")
        await record(store, "fast")
        assert types(await read(store, place(seen))) == []
        await rows.sql.execute(INSERT, "slow")
    later = await read(store, place(seen))
    assert types(later) == ["slow", "fast"]
    assert later[0].seq > later[1].seq
    assert await read(store, place(later)) == []


async def test_pages_join_without_a_gap_or_a_double(store: Store):
    await record(store, "1", "2", "3")
    await record(store, "4", "5")
    got: list[str] = []
    position = Position()
    while page := await read(store, position, limit=2):
        got += types(page)
        position = place(page)
    assert got == ["1", "2", "3", "4", "5"]


async def test_a_stream_may_be_narrowed(store: Store, rows: Rows):
    await record(store, "a", "b", "a")
    await rows.sql.execute(INSERT.replace("run-1", "run-2"), "a")
    assert types(await read(store, types=("a",))) == ["a", "a", "a"]
    assert types(await read(store, execution_id="run-1", types=("a",))) == ["a", "a"]


async def test_the_end_is_the_last_row_that_can_be_sent(store: Store, rows: Rows):
    async with store.tx() as conn:
        assert await history.end(conn) == Position()
    await record(store, "1", "2")
    async with rows.holding(INSERT, "slow"), store.tx() as conn:
        end = await history.end(conn)
    assert types(await read(store, end)) == ["slow"]


async def test_a_look_sees_what_was_committed_while_an_older_transaction_is_open(store: Store, rows: Rows):
    await store.start()
    asked = await store.ask()
    async with rows.sql.transaction():
        await rows.sql.fetchval("SELECT pg_current_xact_id()")
        async with store.tx() as conn:
            mark = await history.since(conn, None)
        await store.decide(asked.approval_id)
        async with store.tx() as conn:
            news = await history.since(conn, mark.horizon)
    assert news.settled == [asked.approval_id]
    assert news.wrote


async def test_a_look_sees_each_row_once_however_long_another_transaction_is_open(store: Store, rows: Rows):
    async with store.tx() as conn:
        first = await history.since(conn, None)
    async with rows.holding(INSERT, "slow"):
        await record(store, "fast")
        async with store.tx() as conn:
            second = await history.since(conn, first.horizon)
        async with store.tx() as conn:
            third = await history.since(conn, second.horizon)
    async with store.tx() as conn:
        fourth = await history.since(conn, third.horizon)
    async with store.tx() as conn:
        fifth = await history.since(conn, fourth.horizon)
    assert [second.wrote, third.wrote, fourth.wrote, fifth.wrote] == [True, False, True, False]
