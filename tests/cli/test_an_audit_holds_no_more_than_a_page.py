"""Sealing, verifying, exporting and pruning take as much memory for a long history as for a short one."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.figures import Figures
from tests.postgres import Database
from tests.services.pruning import now
from tests.services.sealing import seal_all
from tests.services.store import Store

ROWS = """
    INSERT INTO history (type, execution_id, approval_id, approval_request_id, node_id, actor_kind, actor_name,
                         actor_via, actor_address, actor_id, data)
    SELECT 'approval.approved', 'exec_' || n, 'apr_' || n, 'review_v1', 'agent', 'sender', 'legal', 'webhook',
           '10.0.0.1', NULL, jsonb_build_object('from', 'pending', 'to', 'approved', 'feedback', repeat('fine. ', 20))
    FROM generate_series(1, CAST($1 AS int)) AS n
"""
MORE_MEGABYTES = 30.0


class Taken(NamedTuple):
    """What a command took: seconds, and the most memory it had, in megabytes."""

    seconds: float
    megabytes: float


def take(database: Database, out: Path, *arguments: str) -> Taken:
    """Run `holdshort audit` to its end."""
    begun = time.monotonic()
    with out.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-m", "controlplane.cli", "audit", *arguments],
            env={"PATH": os.environ["PATH"], "HOLDSHORT_DATABASE_URL": database.url},
            stdout=written,
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return Taken(time.monotonic() - begun, used.ru_maxrss / 1024)


async def grow(store: Store, rows: int) -> float:
    """Add rows and seal them; the seconds that sealing took."""
    sql = await store.database.connect()
    await sql.execute(ROWS, rows)
    await sql.execute("ANALYZE history")
    await sql.close()
    begun = time.monotonic()
    await seal_all(store)
    return time.monotonic() - begun


@pytest.mark.parametrize(
    ("short", "long"),
    [
        pytest.param(6_000, 30_000, id="quick", marks=pytest.mark.proof),
        pytest.param(20_000, 500_000, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(1200)]),
    ],
)
async def test_long_is_as_short(database: Database, tmp_path: Path, figures: Figures, short: int, long: int):
    store, out = Store(database), tmp_path / "out"
    await grow(store, short)
    before = [await asyncio.to_thread(take, database, out, each) for each in ("verify", "export")]
    sealing = await grow(store, long - short)
    verify, export = [await asyncio.to_thread(take, database, out, each) for each in ("verify", "export")]
    await store.engine.dispose()
    assert (await asyncio.to_thread(out.read_bytes)).count(b"\n") == long + long // 500
    more = max(now.megabytes - then.megabytes for now, then in zip((verify, export), before, strict=True))
    figures(
        "audit of a history",
        rows=long,
        sealed_a_second=(long - short) / sealing,
        verified_a_second=long / verify.seconds,
        exported_a_second=long / export.seconds,
        megabytes=verify.megabytes,
        more_than_short=more,
    )
    assert more < MORE_MEGABYTES


@pytest.mark.parametrize(
    ("short", "long"),
    [
        pytest.param(5_000, 25_000, id="quick", marks=pytest.mark.proof),
        pytest.param(20_000, 500_000, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(1200)]),
    ],
)
async def test_much_is_pruned_as_little(database: Database, tmp_path: Path, figures: Figures, short: int, long: int):
    store, copy, taken = Store(database), tmp_path / "copy", []
    for rows in (short, long):
        await grow(store, rows)
        before = (await now(store)).isoformat()
        await asyncio.to_thread(take, database, copy, "export")
        prune = ("prune", "--before", before, "--exported", str(copy))
        taken.append(await asyncio.to_thread(take, database, tmp_path / "said", *prune))
    await store.engine.dispose()
    sql = await database.connect()
    assert await sql.fetchval("SELECT count(*) FROM history WHERE type <> 'history.pruned'") == 0
    await sql.close()
    more = taken[1].megabytes - taken[0].megabytes
    pruned = long / taken[1].seconds  # with the start of the program
    figures("pruning a history", rows=long, compared_and_pruned_a_second=pruned, more_than_short=more)
    assert more < MORE_MEGABYTES
