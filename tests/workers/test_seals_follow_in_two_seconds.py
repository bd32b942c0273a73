"""A row is sealed within two seconds of its commit, behind the decisions, and what is old is worked off at ease."""

import asyncio
from statistics import quantiles
from typing import Any

import pytest
from structlog.testing import capture_logs

from controlplane.workers import sealer
from controlplane.workers.sealer import Sealer
from tests.app import Api, in_process
from tests.figures import Figures
from tests.owner import UNGUARD
from tests.postgres import Database
from tests.services.sealing import record, sealed
from tests.services.store import Store

LAGS = """
    SELECT extract(epoch FROM s.at - h.at)::float8 AS seconds FROM history h
    JOIN seals s ON (h.xid, h.seq) >= (s.first_xid, s.first_seq) AND (h.xid, h.seq) <= (s.last_xid, s.last_seq)
"""


async def all_sealed(sql: Any) -> bool:
    missing = "SELECT (SELECT count(*) FROM history) - coalesce((SELECT sum(rows) FROM seals), 0)"
    return bool(await sql.fetchval(missing) == 0)


async def until_all_sealed(sql: Any) -> None:
    async with asyncio.timeout(20):
        while not await all_sealed(sql):
            await asyncio.sleep(0.02)


async def decide_for(api: Api, lane: str, turns: int) -> None:
    for turn in range(turns):
        approval_id = await api.asked(f"q-{lane}-{turn}", f"run-{lane}-{turn}")
        assert (await api.decide(approval_id)).status_code == 200


@pytest.mark.parametrize(
    "turns",
    [
        pytest.param(20, id="quick"),
        pytest.param(400, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(600)]),
    ],
)
async def test_while_decisions_are_taken(database: Database, figures: Figures, turns: int):
    sql = await database.connect()
    async with in_process(database, workers=True) as one, in_process(database, workers=True) as other:
        await asyncio.gather(
            *(decide_for(api, f"{n}-{lane}", turns) for n, api in enumerate((one, other)) for lane in "ab")
        )
        await until_all_sealed(sql)
    lags = sorted(row["seconds"] for row in await sql.fetch(LAGS))
    assert len(lags) == await sql.fetchval("SELECT count(*) FROM history")
    assert [each for types in await sealed(sql) for each in types] == [
        row["type"] for row in await sql.fetch("SELECT type FROM history ORDER BY xid, seq")
    ]
    await sql.close()
    figures("seal lag", rows=len(lags), median=quantiles(lags)[1], p99=quantiles(lags, n=100)[98], most=lags[-1])
    assert lags[-1] < 2.0


async def test_what_is_old_is_worked_off_with_rests(database: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sealer, "BATCH", 2)
    store = Store(database)
    await record(store, "1", "2", "3", "4", "5")
    async with in_process(database) as api:
        steps = Sealer(api.runtime)
        pauses = [await steps.step() for _ in range(4)]
    assert [0 < pause < 1.0 for pause in pauses] == [True, True, False, False]
    assert pauses[2:] == [1.0, 1.0]
    await store.engine.dispose()


async def said(database: Database, *, steps: int = 3) -> list[dict[str, Any]]:
    """What a sealer logs in some steps of its own."""
    async with in_process(database) as api:
        sealing = Sealer(api.runtime)
        with capture_logs() as logs:
            for _ in range(steps):
                await sealing.step()
    return [dict(log) for log in logs]


async def test_a_database_that_counts_anew_is_said_once_a_minute(database: Database):
    store = Store(database)
    sql = await database.connect()
    await sql.execute(
        "INSERT INTO seals (number, first_xid, first_seq, last_xid, last_seq, rows, sha256, at)"
        " VALUES (1, '9', 1, '8589934599', 1, 1, decode(repeat('00', 32), 'hex'), now())"
    )
    await record(store, "1")
    (log,) = await said(database)
    assert (log["event"], log["log_level"]) == ("history_is_not_safe", "error")
    assert "--epoch=2 --next-transaction-id=8)" in log["cause"]
    await sql.close()
    await store.engine.dispose()


async def test_a_guard_that_somebody_turned_off_is_said(database: Database):
    sql = await database.connect()
    await sql.execute(UNGUARD)
    await sql.close()
    (log,) = await said(database)
    assert (log["event"], log["fault"]) == ("history_is_not_safe", "unguarded")


async def test_whoever_keeps_history_from_being_sealed_is_noticed(database: Database, monkeypatch: pytest.MonkeyPatch):
    store = Store(database)
    await record(store, "1")
    other = await database.connect()
    async with other.transaction():
        assert await other.fetchval("SELECT pg_try_advisory_xact_lock(hashtextextended('holdshort.seal', 0))")
        assert await said(database) == []
        monkeypatch.setattr(sealer, "LATE_SECONDS", 0.0)
        log, *_ = await said(database)
    assert (log["event"], log["log_level"], log["rows"]) == ("history_is_sealed_late", "warning", 1)
    await other.close()
    await store.engine.dispose()
