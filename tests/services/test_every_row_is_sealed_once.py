"""Each history row gets into one seal, in the order of the stream, whoever seals and whatever commits when."""

import asyncio
import random
from typing import Any

import pytest
import sqlalchemy as sa

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.services import audit
from controlplane.services.audit import HistoryMisplaced
from tests.services.sealing import INSERT, record, seal, seal_all, sealed, verified
from tests.services.store import Rows, Store


async def test_what_was_there_before_comes_first_and_in_batches(store: Store, rows: Rows):
    await record(store, "1", "2", "3")
    await record(store, "4", "5")
    assert [await seal(store, 2) for _ in range(4)] == [2, 2, 1, 0]
    assert await sealed(rows.sql) == [["1", "2"], ["3", "4"], ["5"]]
    found = await verified(store)
    assert (found.rows, found.seals, found.unsealed) == (5, 3, 0)


async def test_nothing_new_makes_no_seal(store: Store, rows: Rows):
    assert await seal(store) == 0
    await record(store, "1")
    assert [await seal(store), await seal(store), await seal(store)] == [1, 0, 0]
    assert await rows.value("SELECT count(*) FROM seals") == 1
    assert (await verified(store)).rows == 1


async def test_a_row_of_a_slow_transaction_is_waited_for(store: Store, rows: Rows):
    async with rows.holding(INSERT, "slow"):
        await record(store, "fast")
        assert await seal(store) == 0
        assert (await verified(store)).unsealed == 1
    assert await seal(store) == 2
    assert await sealed(rows.sql) == [["slow", "fast"]]
    await verified(store)


async def test_a_transaction_that_began_early_and_writes_late_is_waited_for(store: Store, rows: Rows):
    await record(store, "before")
    async with rows.sql.transaction():
        await rows.sql.fetchval("SELECT pg_current_xact_id()")
        await record(store, "fast")
        assert await seal(store) == 1
        await rows.sql.execute(INSERT, "slow")
        assert await seal(store) == 0
    assert await seal(store) == 2
    assert await sealed(rows.sql) == [["before"], ["slow", "fast"]]
    await verified(store)


async def test_a_transaction_that_is_rolled_back_leaves_no_hole(store: Store, rows: Rows):
    transaction = rows.sql.transaction()
    await transaction.start()
    await rows.sql.execute(INSERT, "never")
    await record(store, "fast")
    await transaction.rollback()
    assert await seal(store) == 1
    assert await sealed(rows.sql) == [["fast"]]
    await verified(store)


async def test_a_second_one_does_not_wait_for_the_first(store: Store, rows: Rows):
    await record(store, "1")
    async with store.tx() as conn:
        assert await audit.seal(conn, 10) == 1
        async with asyncio.timeout(5):
            assert await seal(store) == 0
    assert await sealed(rows.sql) == [["1"]]
    await record(store, "2")
    assert await seal(store) == 1
    assert await sealed(rows.sql) == [["1"], ["2"]]


async def test_a_seal_that_was_cut_off_before_its_commit_is_made_again(store: Store, rows: Rows):
    await record(store, "1", "2")

    async def cut_off() -> None:
        async with store.tx() as conn:
            assert await audit.seal(conn, 10) == 2
            mine = await conn.row(sa.text("SELECT pg_backend_pid() AS pid"))
            assert await seal(store) == 0
            await rows.sql.execute("SELECT pg_terminate_backend($1)", mine.pid if mine else 0)

    with pytest.raises(DatabaseUnavailable):
        await cut_off()
    assert await rows.value("SELECT count(*) FROM seals") == 0
    assert await seal(store) == 2
    assert await sealed(rows.sql) == [["1", "2"]]
    await verified(store)


async def test_all_at_once_each_row_is_sealed_once(store: Store, rows: Rows):
    """Writers whose transactions last for different times, and three sealers that never rest."""
    writing = True

    async def write(number: int) -> None:
        connection: Any = await store.database.connect()
        for turn in range(15):
            async with connection.transaction():
                await connection.execute(INSERT, f"{number}.{turn}.a")
                await asyncio.sleep(chance.random() * 0.03)
                await connection.execute(INSERT, f"{number}.{turn}.b")
        await connection.close()

    async def keep_sealing() -> None:
        while writing:
            await seal(store, 7)

    chance = random.Random(4)
    sealers = [asyncio.create_task(keep_sealing()) for _ in range(3)]
    await asyncio.gather(*(write(number) for number in range(6)))
    writing = False
    await asyncio.gather(*sealers)
    await seal_all(store)
    types = [each for types in await sealed(rows.sql) for each in types]
    assert sorted(types) == sorted(f"{n}.{t}.{part}" for n in range(6) for t in range(15) for part in "ab")
    assert types == await rows.column("SELECT type FROM history ORDER BY xid, seq")
    found = await verified(store)
    assert (found.rows, found.unsealed) == (180, 0)
    assert found.seals > 20


async def test_a_database_that_counts_its_transactions_anew_is_told(store: Store, rows: Rows):
    await rows.sql.execute(
        "INSERT INTO seals (number, first_xid, first_seq, last_xid, last_seq, rows, sha256, at)"
        " VALUES (1, '9', 1, '8589934599', 1, 1, decode(repeat('00', 32), 'hex'), now())"
    )
    await record(store, "1")
    with pytest.raises(HistoryMisplaced, match="--epoch=2 --next-transaction-id=8\\)"):
        await seal(store)
