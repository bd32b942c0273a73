"""A refusal undoes everything but what was kept, and an absent database is said to be absent, whatever its sign."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError, ProgrammingError

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer
from controlplane.domain.errors import ApprovalNotFound, DatabaseUnavailable
from controlplane.domain.events import Fact
from controlplane.services import approvals
from controlplane.services.approvals import SeenByPerson
from controlplane.storage import history
from controlplane.storage.engine import Changes, Connection, make_engine, transaction
from controlplane.storage.statement import Statement
from tests.factories import AGENT, PERSON
from tests.postgres import Database
from tests.services.store import Rows, Store

ONE = sa.text("SELECT 1")
PID = sa.text("SELECT pg_backend_pid() AS pid")


async def record(conn: Connection, type_: str) -> None:
    await history.record(conn, Fact(type=type_, actor=AGENT, execution_id="run-1"))


async def leave(store: Store, error: type[Exception], *, keep: bool) -> None:
    """Write something, keep it or not, and end the transaction with an error."""
    async with store.tx() as conn:
        await record(conn, "fact")
        if keep:
            conn.keep()
        raise error


async def test_a_refusal_undoes_everything(store: Store, rows: Rows):
    with pytest.raises(ApprovalNotFound):
        await leave(store, ApprovalNotFound, keep=False)
    assert await rows.history() == []
    assert not store.changes.wrote


async def test_what_was_kept_survives_a_refusal_and_is_told(store: Store, rows: Rows):
    with pytest.raises(ApprovalNotFound):
        await leave(store, ApprovalNotFound, keep=True)
    assert await rows.history() == ["fact"]
    assert store.changes.wrote


async def test_a_fault_undoes_even_what_was_kept(store: Store, rows: Rows):
    with pytest.raises(ZeroDivisionError):
        await leave(store, ZeroDivisionError, keep=True)
    assert await rows.history() == []
    assert not store.changes.wrote


async def test_changes_are_told_after_the_commit(store: Store, rows: Rows):
    committed: list[list[str]] = []
    seen = asyncio.Event()

    def told(changes: Changes) -> None:
        assert changes.wrote
        seen.set()

    async with transaction(store.engine, told) as conn:
        await record(conn, "fact")
        committed.append(await rows.history())
        assert not seen.is_set()
    assert seen.is_set()
    assert [*committed, await rows.history()] == [[], ["fact"]]


async def run_all(store: Store, *statements: str) -> None:
    async with store.tx() as conn:
        for statement in statements:
            await conn.run(sa.text(statement))


async def test_a_wrong_statement_is_no_absent_database(store: Store):
    with pytest.raises(ProgrammingError):
        await run_all(store, "SELECT nothing FROM nowhere")
    with pytest.raises(IntegrityError):
        await run_all(store, "INSERT INTO executions (execution_id, node_id, status) VALUES ('x', 'n', 'odd')")


async def test_a_value_that_its_column_cannot_hold_is_no_absent_database(store: Store):
    number = Statement(sa.select(sa.cast(sa.bindparam("number", type_=sa.Integer), sa.Integer).label("n")))
    for value in ("one", 2**40):
        with pytest.raises(asyncpg.DataError, match="invalid input for query argument"):
            async with store.tx() as conn:
                await conn.rows(number, {"number": value})


async def test_a_database_that_may_not_be_written_now_is_an_absent_one(store: Store):
    with pytest.raises(DatabaseUnavailable):
        await run_all(store, "SET TRANSACTION READ ONLY", "DELETE FROM parked")


async def use(url: str) -> None:
    """One trivial transaction on an engine of its own."""
    engine = make_engine(url, 1)
    try:
        async with transaction(engine) as conn:
            await conn.row(ONE)
    finally:
        await engine.dispose()


async def test_a_refused_connection_is_an_absent_database():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(DatabaseUnavailable):
            await use(f"postgresql://nobody@127.0.0.1:{taken.getsockname()[1]}/none")


@pytest.fixture
async def guest(database: Database, rows: Rows) -> AsyncIterator[str]:
    """The URL of a role that may have no connection at all."""
    name = f"guest_{database.name[-12:]}"
    await rows.sql.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'guest' CONNECTION LIMIT 0")
    url = sa.make_url(database.url).set(username=name, password="guest")
    yield url.render_as_string(hide_password=False)
    await rows.sql.execute(f"DROP ROLE {name}")


async def test_a_full_server_is_an_absent_database(guest: str):
    with pytest.raises(DatabaseUnavailable) as refused:
        await use(guest)
    assert "too many connections" in str(refused.value.__cause__)


async def test_an_exhausted_pool_is_an_absent_database(database: Database):
    store = Store(database, pool_size=1)
    store.engine.pool._timeout = 0.05  # type: ignore[attr-defined]
    async with store.tx() as conn:
        await conn.row(ONE)
        with pytest.raises(DatabaseUnavailable):
            await run_all(store, "SELECT 1")
    async with store.tx() as conn:
        assert await conn.row(ONE)
    await store.engine.dispose()


async def test_a_lock_that_is_not_to_be_had_is_an_absent_database(store: Store, rows: Rows):
    await store.start()
    approval = await store.ask()
    async with rows.holding("SELECT 1 FROM executions FOR UPDATE"):
        with pytest.raises(DatabaseUnavailable) as refused:
            await store.decide(approval.approval_id)
    assert "lock timeout" in str(refused.value.__cause__)
    assert (await store.decide(approval.approval_id)).applied


async def test_a_slow_statement_is_an_absent_database(store: Store):
    with pytest.raises(DatabaseUnavailable):
        await run_all(store, "SET LOCAL statement_timeout = '20ms'", "SELECT pg_sleep(5)")


async def decide_and_be_killed(store: Store, rows: Rows, approval_id: str) -> None:
    async with store.tx() as conn:
        answer = Answer(status=ApprovalStatus.APPROVED, actor=PERSON)
        await approvals.decide(conn, approval_id, answer, seen=SeenByPerson(), new_id=store.new_id)
        await rows.sql.execute("SELECT pg_terminate_backend($1, 5000)", await backend(conn))


async def test_a_killed_backend_leaves_nothing_half_done(store: Store, rows: Rows):
    await store.start()
    approval = await store.ask()
    with pytest.raises(DatabaseUnavailable):
        await decide_and_be_killed(store, rows, approval.approval_id)
    assert (await store.look(approval.approval_id)).status is ApprovalStatus.PENDING
    assert await rows.history() == ["execution.created", "approval.requested", "execution.waiting"]
    assert (await store.decide(approval.approval_id)).applied


def end_half(driver: Any) -> None:
    """Let the driver read that the server ends its connection, and not yet that it is closed."""
    fields = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0"
    driver._protocol.data_received(b"E" + struct.pack("!I", len(fields) + 4) + fields)


async def commit_on_half_a_connection(store: Store) -> None:
    async with store.tx() as conn:
        await record(conn, "undone")
        end_half(conn._driver)


async def test_a_connection_whose_end_is_half_read_is_an_absent_database(store: Store, rows: Rows):
    with pytest.raises(DatabaseUnavailable):
        await commit_on_half_a_connection(store)
    assert await rows.history() == []
    await store.start()


async def write_and_idle(store: Store, rows: Rows) -> None:
    async with store.tx() as conn:
        pid = await backend(conn)
        await record(conn, "undone")
        await conn.run(sa.text("SET LOCAL idle_in_transaction_session_timeout = '20ms'"))
        await until_gone(rows.sql, pid)
        await conn.row(ONE)


async def test_a_transaction_left_idle_is_ended_by_the_database(store: Store, rows: Rows):
    with pytest.raises(DatabaseUnavailable):
        await write_and_idle(store, rows)
    assert await rows.history() == []
    async with store.tx() as conn:
        assert await conn.row(ONE)


async def test_each_transaction_is_bounded(store: Store):
    async with store.tx() as conn:
        limits = [
            (await conn.rows(sa.text(f"SHOW {name}")))[0][0]
            for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        ]
    assert limits == ["5s", "1s", "5s"]


async def backend(conn: Connection) -> int:
    row = await conn.row(PID)
    assert row is not None
    return int(row.pid)


async def until_gone(watcher: "asyncpg.Connection[asyncpg.Record]", pid: int) -> None:
    async with asyncio.timeout(10):
        while await watcher.fetchval("SELECT 1 FROM pg_stat_activity WHERE pid = $1", pid):
            await asyncio.sleep(0.005)


async def test_a_statement_that_failed_unseen_is_never_called_committed(store: Store, rows: Rows):
    async def swallow() -> None:
        async with store.tx() as conn:
            await record(conn, "fact")
            with contextlib.suppress(ProgrammingError):
                await conn.rows(sa.text("SELECT nothing_of_this_name"))

    with pytest.raises(RuntimeError, match="rolled back"):
        await swallow()
    assert await rows.history() == []
    assert not store.changes.wrote


async def test_a_cancelled_transaction_leaves_nothing_and_the_pool_goes_on(database: Database, rows: Rows):
    engine = make_engine(database.url, 1)
    entered = asyncio.Event()

    async def sleep() -> None:
        async with transaction(engine) as conn:
            await record(conn, "fact")
            entered.set()
            await conn.rows(sa.text("SELECT pg_sleep(4)"))

    sleeping = asyncio.create_task(sleep())
    await entered.wait()
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeping
    async with transaction(engine) as conn:
        await conn.rows(ONE)
    assert await rows.history() == []
    await engine.dispose()


async def test_a_connection_that_was_closed_meanwhile_is_replaced_unnoticed(database: Database, rows: Rows):
    engine = make_engine(database.url, 1)
    async with transaction(engine) as conn:
        (first,) = await conn.rows(PID)
    async with engine.connect() as sql:
        driver = (await sql.get_raw_connection()).driver_connection
    await rows.sql.execute("SELECT pg_terminate_backend($1)", first.pid)
    async with asyncio.timeout(5):
        while not driver.is_closed():
            await asyncio.sleep(0.001)
    async with transaction(engine) as conn:
        (second,) = await conn.rows(PID)
    assert second.pid != first.pid
    await engine.dispose()


async def test_a_rollback_that_was_cut_off_is_not_trusted(database: Database, rows: Rows):
    engine = make_engine(database.url, 1)
    pids: list[int] = []

    async def fail() -> None:
        async with transaction(engine) as conn:
            pids.append(await backend(conn))
            await record(conn, "fact")
            asyncio.get_running_loop().call_soon(failing.cancel)
            raise ZeroDivisionError

    failing = asyncio.create_task(fail())
    with pytest.raises(asyncio.CancelledError):
        await failing
    async with transaction(engine) as conn:
        pids.append(await backend(conn))
    assert pids[0] != pids[1]
    assert await rows.history() == []
    await engine.dispose()
