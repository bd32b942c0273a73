"""Processes that seal are killed again and again while rows come in: each row is sealed once."""

import asyncio
import random
import subprocess
import sys
from typing import Any

import pytest

from tests.durability.conftest import Figures
from tests.postgres import Database
from tests.services.sealing import INSERT, seal_all, sealed, verified
from tests.services.store import Store

LANES = 4


class Sealing:
    """One process that seals."""

    def __init__(self, url: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.durability.sealing_process", url], stdout=subprocess.PIPE
        )

    def wait_until_it_seals(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"sealing\n"

    def kill(self) -> None:
        """SIGKILL, wherever it is."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


async def write(database: Database, lane: int, ended: asyncio.Event, chance: random.Random) -> int:
    """Transactions of two rows that stay open for different times, one in five of which is rolled back; the rows."""
    connection: Any = await database.connect()
    written = 0
    while not ended.is_set():
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(INSERT, f"{lane}.{written}")
        await asyncio.sleep(chance.random() * 0.02)
        await connection.execute(INSERT, f"{lane}.{written + 1}")
        if chance.random() < 0.2:
            await transaction.rollback()
        else:
            await transaction.commit()
            written += 2
    await connection.close()
    return written


@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(3, id="quick"),
        pytest.param(200, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(1200)]),
    ],
)
async def test_each_row_is_sealed_once(database: Database, figures: Figures, kills: int):
    chance, ended, store = random.Random(4), asyncio.Event(), Store(database)
    running = [Sealing(database.url) for _ in range(2)]
    for each in running:
        await asyncio.to_thread(each.wait_until_it_seals)
    writing = [asyncio.create_task(write(database, lane, ended, chance)) for lane in range(LANES)]
    try:
        for number in range(kills):
            await asyncio.sleep(chance.random() * 0.2)
            await asyncio.to_thread(running[number % 2].kill)
            running[number % 2] = Sealing(database.url)
            await asyncio.to_thread(running[number % 2].wait_until_it_seals)
    finally:
        ended.set()
        rows = sum(await asyncio.gather(*writing))
        for each in running:
            each.kill()
    await check(store, rows)
    found = await verified(store)
    figures("seals through kills", kills=kills, rows=found.rows, seals=found.seals, sealed_twice=0, never_sealed=0)
    await store.engine.dispose()


async def check(store: Store, rows: int) -> None:
    """What was written is sealed, in the order of the stream, once."""
    sql = await store.database.connect()
    by_killed: int = await sql.fetchval("SELECT coalesce(sum(rows), 0) FROM seals")
    assert by_killed > 0
    await seal_all(store)
    types = [each for types in await sealed(sql) for each in types]
    assert types == [row["type"] for row in await sql.fetch("SELECT type FROM history ORDER BY xid, seq")]
    assert len(types) == len(set(types)) == rows
    await sql.close()
