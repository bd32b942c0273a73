"""The migrations from nothing and the declared tables are the same database, to the last CHECK and index."""

import asyncio
from collections.abc import Callable

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from controlplane.storage import migrations
from controlplane.storage.engine import make_engine
from controlplane.storage.tables import metadata
from tests.postgres import Database


def engine_of(url: str) -> sa.ext.asyncio.AsyncEngine:
    return create_async_engine(sa.make_url(url).set(drivername="postgresql+asyncpg"), poolclass=NullPool)


async def rebuild(url: str) -> None:
    engine = engine_of(url)
    async with engine.begin() as conn:
        await conn.run_sync(metadata.drop_all)
        await conn.run_sync(metadata.create_all)
    await engine.dispose()


async def drop_everything(url: str) -> None:
    engine = engine_of(url)
    async with engine.begin() as conn:
        await conn.execute(sa.text("DROP SCHEMA public CASCADE"))
        await conn.execute(sa.text("CREATE SCHEMA public"))
    await engine.dispose()


async def test_both_dumps_are_equal(database: Database, pg_dump: Callable[[str], str]) -> None:
    migrated = pg_dump(database.url)
    await rebuild(database.url)
    assert pg_dump(database.url) == migrated
    assert "CONSTRAINT executions_waits_for_something" in migrated


async def test_a_dump_without_one_check_differs(database: Database, pg_dump: Callable[[str], str]) -> None:
    migrated = pg_dump(database.url)
    conn = await database.connect()
    await conn.execute("ALTER TABLE approvals DROP CONSTRAINT approvals_decided_in_time")
    await conn.close()
    assert pg_dump(database.url) != migrated


async def test_two_starting_servers_migrate_once(database: Database) -> None:
    await drop_everything(database.url)
    results = await asyncio.gather(*(migrations.migrate(database.url) for _ in range(4)))
    assert sorted(str(r.before) for r in results) == [*[str(migrations.newest())] * 3, "None"]
    assert {r.after for r in results} == {migrations.newest()}


async def test_an_unknown_schema_is_refused(database: Database) -> None:
    engine = make_engine(database.url, 1)
    await migrations.check(engine)
    conn = await database.connect()
    await conn.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(migrations.SchemaUnknown):
        await migrations.check(engine)
    with pytest.raises(migrations.SchemaUnknown):
        await migrations.migrate(database.url)
    await conn.execute("DROP TABLE alembic_version")
    with pytest.raises(migrations.SchemaUnknown, match="holdshort migrate"):
        await migrations.check(engine)
    await conn.close()
    await engine.dispose()
