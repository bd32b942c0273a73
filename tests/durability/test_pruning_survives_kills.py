"""Killed again and again, beside writers and sealing, a pruning leaves history whole at each moment, and ends."""

import asyncio
import random
import time
from typing import Any

import pytest

from tests.cli.processes import Running, run
from tests.durability.conftest import Figures
from tests.durability.test_sealing_survives_kills import write
from tests.postgres import Database
from tests.services.pruning import now
from tests.services.sealing import seal, seal_all, verified
from tests.services.store import Store

ROWS = """
    INSERT INTO history (type, execution_id, actor_kind, actor_name, actor_via, data)
    SELECT 'execution.note', 'old-' || n, 'agent', 'node-1', 'api', jsonb_build_object('note', repeat('x', 100))
    FROM generate_series(1, CAST($1 AS int)) AS n
"""
LANES = 2
A_SEAL = 1000
MARKS = "SELECT count(*) FROM prunings"


async def seal_on(store: Store, ended: asyncio.Event) -> None:
    while not ended.is_set():
        await seal(store)
        await asyncio.sleep(0.05)


async def kill_after_progress(command: Running, sql: Any, delay: float) -> bool:
    """Kill a pruning some time after it has pruned something; False when it came to its end before."""
    marks = await sql.fetchval(MARKS)
    while command.process.poll() is None and await sql.fetchval(MARKS) == marks:
        await asyncio.sleep(0.002)
    await asyncio.sleep(delay)
    killed = command.process.poll() is None
    await asyncio.to_thread(command.close)
    return killed


@pytest.mark.parametrize(
    ("rows", "kills"),
    [
        pytest.param(60_000, 3, id="quick", marks=pytest.mark.proof),
        pytest.param(1_000_000, 60, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(1800)]),
    ],
)
async def test_history_is_whole_at_each_moment(database: Database, figures: Figures, rows: int, kills: int):
    chance, ended, store, sql = random.Random(5), asyncio.Event(), Store(database), await database.connect()
    await sql.execute(ROWS, rows)
    await seal_all(store, A_SEAL)
    arguments = ("audit", "prune", "--without-export", "--before", (await now(store)).isoformat())
    environ = {"HOLDSHORT_DATABASE_URL": database.url}
    writing = [asyncio.create_task(write(database, lane, ended, chance)) for lane in range(LANES)]
    sealing, killed = asyncio.create_task(seal_on(store, ended)), 0
    try:
        for _ in range(kills):
            killed += await kill_after_progress(Running(*arguments, **environ), sql, chance.random() * 0.05)
            found = await verified(store)
            assert found.pruned is not None
        left = await sql.fetchval("SELECT count(*) FROM history WHERE execution_id LIKE 'old-%'")
        begun = time.monotonic()
        done = await asyncio.to_thread(run, *arguments, **environ)
        seconds = time.monotonic() - begun
        assert done.returncode == 0, done.stderr
    finally:
        ended.set()
        written = sum(await asyncio.gather(*writing))
        await sealing
    await seal_all(store)
    found = await verified(store)
    assert killed > 0
    assert await sql.fetchval("SELECT count(*) FROM history WHERE execution_id LIKE 'old-%'") == 0
    assert await sql.fetchval("SELECT count(*) FROM history WHERE type <> 'history.pruned'") == written
    assert found.pruned is not None
    assert found.pruned.record is not None
    assert found.pruned.record.rows == rows
    figures("pruning through kills", rows=rows, kills=killed, lost=0, pruned_a_second_at_last=left / seconds)
    await sql.close()
    await store.engine.dispose()
