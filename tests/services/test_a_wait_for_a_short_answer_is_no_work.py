"""A run that waits for a short-lived answer does not work meanwhile: its limit of running time stands still."""

import os

import pytest

from controlplane.domain.access import Reach
from controlplane.domain.answers import Choices, Kind
from controlplane.domain.feedback import Asking
from controlplane.domain.sealing import Opener
from controlplane.services import feedback
from controlplane.storage.engine import transaction
from tests.factories import AGENT, PERSON
from tests.services.store import Rows, Store

KEY = Opener(os.urandom(32)).public_key
LIMIT = 100.0
WORKED = 10.0


@pytest.fixture
async def run(store: Store, rows: Rows) -> str:
    """A run that has worked for 10 of its 100 seconds."""
    await store.start("run-1", "node-1")
    await rows.sql.execute(
        "UPDATE executions SET limit_seconds = $1, running_since = clock_timestamp() - make_interval(secs => $2),"
        " work_deadline = clock_timestamp() + make_interval(secs => $1 - $2)",
        LIMIT,
        WORKED,
    )
    return "run-1"


async def ask(store: Store, unique_id: str, run: str, reach: Reach | None = None) -> None:
    asking = Asking(
        unique_id=unique_id, message="Code?", choices=Choices(kind=Kind.TEXT), public_key=KEY, execution_id=run
    )
    async with transaction(store.engine, reach=reach or Reach()) as conn:
        await feedback.ask(conn, asking, owner="k", actor=AGENT)


async def answer(store: Store, unique_id: str) -> None:
    async with store.tx() as conn:
        await feedback.submit(conn, unique_id, "1", actor=PERSON)


async def clock(rows: Rows) -> tuple[float, float | None]:
    """The seconds that the run worked until its clock stopped, and how many are left while it goes."""
    row = await rows.sql.fetchrow(
        "SELECT worked_seconds::float8, extract(epoch FROM work_deadline - running_since)::float8 FROM executions"
    )
    return tuple(row)


async def test_the_clock_stands_still_until_the_answer(store: Store, rows: Rows, run: str):
    await ask(store, "q", run)
    worked, left = await clock(rows)
    assert WORKED <= worked < WORKED + 5
    assert left is None
    await answer(store, "q")
    assert await clock(rows) == (worked, pytest.approx(LIMIT - worked, abs=1e-3))


async def test_it_stands_still_until_the_last_of_several(store: Store, rows: Rows, run: str):
    await ask(store, "first", run)
    await ask(store, "second", run)
    worked, _ = await clock(rows)
    await answer(store, "first")
    assert await clock(rows) == (worked, None)
    async with store.tx() as conn:
        await feedback.withdraw(conn, "second", owner="k", actor=AGENT)
    assert await clock(rows) == (worked, pytest.approx(LIMIT - worked, abs=1e-3))


@pytest.mark.parametrize("column", ["expires_at", "waiter_until"])
async def test_it_goes_on_when_nobody_answered(store: Store, rows: Rows, run: str, column: str):
    await ask(store, "q", run)
    await rows.sql.execute(f"UPDATE feedback SET {column} = clock_timestamp()")
    async with store.tx() as conn:
        await feedback.sweep(conn, limit=10)
    assert (await clock(rows))[1] is not None


async def test_nobody_stops_anothers_clock(store: Store, rows: Rows, run: str):
    await ask(store, "q", run, Reach(nodes=frozenset({"node-2"}), owner="k"))
    assert (await clock(rows))[1] is not None
    before = await clock(rows)
    await answer(store, "q")
    assert await clock(rows) == before


async def test_a_run_that_ended_meanwhile_stays_as_it_ended(store: Store, rows: Rows, run: str):
    await ask(store, "q", run)
    await rows.sql.execute("UPDATE executions SET status = 'failed', ended_at = clock_timestamp()")
    await answer(store, "q")
    assert (await clock(rows))[1] is None
