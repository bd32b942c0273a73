"""History and its seals only grow: whoever is not the owner, turning the guard off by name, changes nothing in them."""

import asyncpg
import pytest

from controlplane.domain.seals import COLUMNS
from controlplane.storage import append_only
from controlplane.storage.append_only import Guard
from controlplane.storage.tables import history
from tests.owner import UNGUARD, unguarded
from tests.services.store import Rows, Store

SEAL = (
    "INSERT INTO seals (number, first_xid, first_seq, last_xid, last_seq, rows, sha256, at)"
    " VALUES (1, '1', 1, '1', 1, 1, decode(repeat('00', 32), 'hex'), clock_timestamp())"
)
CHANGES = {
    "an update": "UPDATE {table} SET {other} = {other}",
    "an update of nothing": "UPDATE {table} SET {other} = {other} WHERE false",
    "a delete": "DELETE FROM {table}",
    "truncation": "TRUNCATE {table}",
    "truncation with others": "TRUNCATE approvals, {table} CASCADE",
    "a merge": "MERGE INTO {table} t USING (SELECT 1) AS one ON true WHEN MATCHED THEN DELETE",
    "the winner of an upsert": (
        "INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM {table} ON CONFLICT ({key})"
        " DO UPDATE SET {other} = EXCLUDED.{other}"
    ),
    "a session that says it replicates": "SET LOCAL session_replication_role = replica; DELETE FROM {table}",
}


@pytest.mark.parametrize("table", ["history", "seals", "prunings"])
@pytest.mark.parametrize("change", CHANGES)
async def test_even_the_owner_is_refused(store: Store, rows: Rows, table: str, change: str):
    await store.start()
    await rows.sql.execute(SEAL)
    await rows.sql.execute("INSERT INTO prunings (seal) VALUES (1)")
    before = await rows.sql.fetch(f"SELECT * FROM {table}")
    key = {"history": "seq", "seals": "number", "prunings": "seal"}[table]
    other = {"history": "at", "seals": "at", "prunings": "xid"}[table]
    statement = CHANGES[change].format(table=table, key=key, other=other)
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match=f"{table} only grows"):
        async with rows.sql.transaction():
            await rows.sql.execute(statement)
    assert await rows.sql.fetch(f"SELECT * FROM {table}") == before


MARKED = {
    "an update": "UPDATE history SET type = type",
    "truncation": "TRUNCATE history",
    "the mark taken away": "DELETE FROM prunings",
    "the mark changed": "UPDATE prunings SET seal = 9",
    "seals deleted": "DELETE FROM seals",
}


@pytest.mark.parametrize("change", MARKED)
async def test_what_is_marked_as_pruned_may_be_deleted_and_nothing_else(store: Store, rows: Rows, change: str):
    await store.start()
    statements = ["INSERT INTO prunings (seal) VALUES (1)", "DELETE FROM history", MARKED[change]]
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="only grows"):
        await rows.sql.execute(";".join(statements))
    assert await rows.history() == ["execution.created"]


async def test_a_mark_is_good_for_its_own_transaction(store: Store, rows: Rows):
    await store.start()
    await rows.sql.execute("INSERT INTO prunings (seal) VALUES (1)")
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="history only grows: DELETE"):
        await rows.sql.execute("DELETE FROM history")


async def test_a_table_that_comes_first_in_the_path_is_no_mark(store: Store, rows: Rows):
    await store.start()
    mine = "CREATE TEMP TABLE prunings AS SELECT 1 AS seal, pg_current_xact_id() AS xid"
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="history only grows: DELETE"):
        await rows.sql.execute(f"{mine}; DELETE FROM history")


async def test_the_owner_must_turn_it_off_by_name(store: Store, rows: Rows):
    await store.start()
    async with unguarded(rows.sql):
        await rows.sql.execute("DELETE FROM history")
    assert await rows.history() == []
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await rows.sql.execute("DELETE FROM history")


WEAKENED = [
    UNGUARD,
    "ALTER TABLE seals ENABLE TRIGGER seals_only_grows",
    "DROP TRIGGER history_only_grows ON history",
    "DROP TABLE seals",
]


async def test_a_guard_that_is_there_is_seen(store: Store):
    async with store.tx() as conn:
        assert await append_only.guard(conn) == Guard(triggers=True, grants=False)


@pytest.mark.parametrize("weakened", WEAKENED)
async def test_a_guard_that_is_off_is_seen(store: Store, rows: Rows, weakened: str):
    await rows.sql.execute(weakened)
    async with store.tx() as conn:
        assert not (await append_only.guard(conn)).triggers


def test_a_seal_covers_every_column():
    assert sorted(COLUMNS) == sorted(column.name for column in history.columns)
