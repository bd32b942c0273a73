import asyncio

from tests.postgres import Database, Server, clone, wait_until_any_blocked, wait_until_blocked


async def test_a_clone_is_migrated_and_apart(database: Database, postgres_server: Server, template_database: str):
    with clone(postgres_server, template_database) as other:
        assert other.name != database.name
        ours, theirs = await database.connect(), await other.connect()
        try:
            assert await ours.fetchval("SELECT count(*) FROM alembic_version") == 1
            await ours.execute("CREATE TABLE only_here (id int)")
            assert await theirs.fetchval("SELECT to_regclass('only_here')") is None
        finally:
            await ours.close()
            await theirs.close()


async def test_a_lock_wait_can_be_waited_for(database: Database):
    holder, waiter, watcher = [await database.connect() for _ in range(3)]
    try:
        async with holder.transaction():
            await holder.execute("SELECT pg_advisory_xact_lock(1)")
            waiting = asyncio.create_task(waiter.execute("SELECT pg_advisory_xact_lock(1)"))
            await wait_until_blocked(watcher, waiter.get_server_pid())
            await wait_until_any_blocked(watcher)
        await waiting
    finally:
        for connection in (holder, waiter, watcher):
            await connection.close()
