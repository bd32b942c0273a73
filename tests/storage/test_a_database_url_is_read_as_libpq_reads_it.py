"""Providers hand out URLs with parameters, `sslmode` above all; every connection takes the same URL."""

import asyncio

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from controlplane.storage.engine import DatabaseUrlWrong, make_engine, transaction
from controlplane.storage.executions import get
from controlplane.storage.migrations import check, migrate
from controlplane.storage.notify import listen, notify
from tests.postgres import Database


def with_parameters(url: str, parameters: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{parameters}"


async def test_its_parameters_reach_every_connection(database: Database):
    url = with_parameters(database.url, "sslmode=disable&application_name=holdshort-test")
    migrated = await migrate(url)
    assert migrated.before == migrated.after
    heard = asyncio.Event()
    engine = make_engine(url, 1)
    try:
        await check(engine)
        async with listen(url, heard.set):
            async with transaction(engine) as conn:
                await notify(conn)
                assert await get(conn, "nobody") is None
            await asyncio.wait_for(heard.wait(), 10)
            rows = await database.connect()
            named = await rows.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'holdshort-test'"
                " AND datname = current_database()"
            )
            await rows.close()
            assert named == 2
    finally:
        await engine.dispose()


@pytest.mark.parametrize("parameter", ["sslmode=perhaps", "target_session_attrs=most"])
async def test_a_parameter_that_means_nothing_is_named(parameter: str):
    url = f"postgresql://u:hunter22@127.0.0.1:1/x?{parameter}"
    engine = make_engine(url, 1)
    for using in (check(engine), migrate(url), look(engine)):
        with pytest.raises(DatabaseUrlWrong) as refused:
            await using
        assert parameter.partition("=")[0] in refused.value.message
        assert "hunter22" not in refused.value.message
    await engine.dispose()


async def look(engine: AsyncEngine) -> None:
    async with transaction(engine) as conn:
        await get(conn, "nobody")
