"""A key holds until its end by the database's clock and not longer; the first key is one; a node is one key's."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import TypeAlias

import asyncpg
import pytest
from msgspec import structs

from controlplane.domain import keys as rules
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.domain.keys import ENTROPY_BYTES, Scope
from controlplane.domain.keys import Key as KeptKey
from controlplane.runtime.key_book import FRESH_SECONDS, ROTATED_SECONDS, Find, KeyBook
from controlplane.runtime.runtime import BOOTSTRAP
from controlplane.services import access
from controlplane.storage.keys import Found
from tests.app import Api, in_process, problem, served
from tests.figures import Figures
from tests.postgres import Database, wait_until_any_blocked
from tests.security.callers import SETUP, Caller, Key, caller, count, made

OVERLAP = 3.0
Sql: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture
async def sql(database: Database) -> AsyncIterator[Sql]:
    connection = await database.connect()
    yield connection
    await connection.close()


@pytest.fixture
async def watcher(database: Database) -> AsyncIterator[Sql]:
    """A connection that sees who waits while the other one holds a lock."""
    connection = await database.connect()
    yield connection
    await connection.close()


@asynccontextmanager
async def two(database: Database) -> AsyncIterator[tuple[Api, Api]]:
    """Two replicas on one database."""
    async with served(database) as first, served(database) as second:
        yield first, second


async def last_success(sql: Sql, callers: Sequence[Caller], end: str, *values: object) -> int:
    """Call until everybody is refused: whoever is let in has called before the end by the database's clock."""
    let_in, standing = 0, list(callers)
    async with asyncio.timeout(30):
        while standing:
            over = await sql.fetchval(f"SELECT clock_timestamp() >= ({end})", *values)
            answers = await asyncio.gather(*(each("GET", "/executions") for each in standing))
            for who, answer in zip(list(standing), answers, strict=True):
                if answer.status_code == 200:
                    assert not over, "a key was let in after its end"
                    let_in += 1
                else:
                    assert problem(answer) == (401, "invalid_key")
                    standing.remove(who)
    return let_in


async def test_a_rotated_secret_holds_for_the_overlap_and_not_longer_on_every_replica(
    database: Database, sql: Sql, figures: Figures
):
    async with two(database) as (first, second):
        old = await made(first, scopes=("agent",))
        for replica in (first, second):
            await replica.runtime.settle_access()
        callers = [Caller(first, old), Caller(second, old)]
        await callers[0].asks("run-1", "node-1")
        async with first.runtime.transaction() as conn:
            entropy = os.urandom(ENTROPY_BYTES)
            _, text = await access.rotate(conn, old.key_id, entropy=entropy, others_for=OVERLAP, actor=SETUP)
        end = "SELECT valid_until FROM key_secrets WHERE key_id = $1 AND valid_until IS NOT NULL"
        let_in = await last_success(sql, callers, end, old.key_id)
        assert let_in > 0
        for replica in (first, second):
            fresh = Caller(replica, Key(old.key_id, text))
            # What the key owns is still its own.
            assert [each["execution_id"] for each in (await fresh.must("GET", "/executions"))["executions"]] == [
                "run-1"
            ]
        figures("rotated", overlap_seconds=OVERLAP, calls_let_in=let_in, let_in_after_it=0)


async def test_what_is_held_open_under_a_secret_that_was_rotated_away_ends_with_it(database: Database):
    async with served(database) as api:
        agent = await caller(api, "agent")
        approval = await agent.asks("run-1", "node-1")
        path = "/api/v1/events?from=now"
        async with api.client.stream("GET", path, headers={"X-API-Key": agent.key.text}) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == ": holdshort"
            waiting = asyncio.create_task(agent("POST", "/approvals/wait", {"approval_ids": [approval], "wait": 60}))
            async with api.runtime.transaction() as conn:
                entropy = os.urandom(ENTROPY_BYTES)
                _, text = await access.rotate(conn, agent.key.key_id, entropy=entropy, others_for=0, actor=SETUP)
            fresh = Caller(api, Key(agent.key.key_id, text))
            async with asyncio.timeout(5):
                assert [line async for line in lines if line.startswith("data:")] == []
                assert problem(await waiting) == (401, "invalid_key")
        # The key itself goes on.
        assert (await fresh.must("GET", f"/approvals/{approval}"))["status"] == "pending"


async def test_a_key_ends_by_the_databases_clock_on_every_replica(database: Database, sql: Sql):
    async with two(database) as (first, second):
        key = await made(first, scopes=("agent",), expires_in=timedelta(seconds=2))
        for replica in (first, second):
            await replica.runtime.settle_access()
        callers = [Caller(first, key), Caller(second, key)]
        end = "SELECT expires_at FROM api_keys WHERE key_id = $1"
        assert await last_success(sql, callers, end, key.key_id) > 0


async def test_last_use_is_kept(database: Database):
    async with served(database) as api:
        agent = await caller(api, "agent")
        assert await count(api, "SELECT count(last_used_at) FROM api_keys") == 0
        await agent.must("GET", "/executions")
        async with asyncio.timeout(10):
            while not await count(api, "SELECT count(*) FROM api_keys WHERE last_used_at > created_at"):
                await asyncio.sleep(0.01)


async def test_last_use_is_written_twice_a_minute_at_most():
    key, text = a_key()
    reads = [key]
    book = KeyBook(finding(reads))
    presented = rules.read(text)
    assert presented is not None
    kept = []
    for seconds in (0, 1, 29, 31, 32, 62):
        reads[0] = structs.replace(key, now=key.now + timedelta(seconds=seconds))
        assert await book.recognise(presented, fresh=True) is not None
        kept += [round((at - key.now).total_seconds()) for at in book.take_used().values()]
    assert kept == [0, 31, 62]


def a_key() -> tuple[Found, str]:
    """A key as it is read, and its text."""
    key_id, text, digest = rules.mint(os.urandom(ENTROPY_BYTES))
    now = datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    named = KeptKey(key_id=key_id, name="a", scopes=(Scope.AGENT,), node_id=None, created_at=now)
    return Found(**structs.asdict(named), digests=(digest,), until=(None,), nodes=(), displaced=False, now=now), text


def finding(kept: list[Found]) -> Find:
    """Finds the key that is kept at the moment, which may be away with the database."""

    async def find(ids: Sequence[str], _: bool) -> list[Found]:
        if not kept:
            raise DatabaseUnavailable
        return [key for key in kept if key.key_id in ids]

    return find


async def test_a_key_that_cannot_be_looked_at_is_trusted_for_two_seconds_and_then_not(figures: Figures):
    key, text = a_key()
    kept = [key]
    book = KeyBook(finding(kept))
    presented = rules.read(text)
    assert presented is not None
    assert await book.recognise(presented) is not None
    kept.clear()
    loop = asyncio.get_running_loop()
    begun, let_in = loop.time(), 0
    while await is_let_in(book, presented):
        assert loop.time() - begun < FRESH_SECONDS
        let_in += 1
        await asyncio.sleep(0.01)
    assert let_in > 0
    with pytest.raises(DatabaseUnavailable):
        await book.standing(presented)
    figures("database away", seconds_a_known_key_was_let_in=loop.time() - begun)


async def is_let_in(book: KeyBook, presented: rules.Presented) -> bool:
    """Whether a key is recognised; False when it cannot be looked at."""
    try:
        return await book.recognise(presented) is not None
    except DatabaseUnavailable:
        return False


async def test_a_key_that_many_calls_come_with_at_once_is_read_once():
    reads: list[Sequence[str]] = []
    gate = asyncio.Event()

    async def find(ids: Sequence[str], _: bool) -> list[Found]:
        reads.append(ids)
        await gate.wait()
        return []

    book = KeyBook(find)
    presented = rules.read(rules.mint(os.urandom(ENTROPY_BYTES))[1])
    assert presented is not None
    calls = [asyncio.create_task(book.recognise(presented)) for _ in range(50)]
    while not reads:
        await asyncio.sleep(0)
    calls[0].cancel()
    gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError)
    assert answers[1:] == [None] * 49
    assert len(reads) == 1


async def test_a_look_that_took_longer_does_not_undo_a_later_one():
    key, text = a_key()
    kept, gates = [key], [asyncio.Event(), asyncio.Event()]
    begun: list[list[Found]] = []

    async def find(_: Sequence[str], __: bool) -> list[Found]:
        found = list(kept)
        begun.append(found)
        await gates[len(begun) - 1].wait()
        return found

    book = KeyBook(find)
    presented = rules.read(text)
    assert presented is not None
    slow = asyncio.create_task(book.recognise(presented))
    while not begun:
        await asyncio.sleep(0)
    kept[0] = structs.replace(key, revoked_at=key.now)
    gates[1].set()
    assert await book.standing(presented, fresh=True) is None
    gates[0].set()
    await slow
    assert await book.standing(presented) is None


async def test_a_new_secret_holds_at_once_and_wrong_ones_do_not_have_the_key_read_each_time():
    key, text = a_key()
    kept = [key]
    reads: list[Sequence[str]] = []
    find = finding(kept)

    async def counting(ids: Sequence[str], known: bool) -> list[Found]:
        reads.append(ids)
        return await find(ids, known)

    book = KeyBook(counting)
    old, fresh = rules.read(text), rules.Presented(key.key_id, b"another")
    assert old is not None
    assert await book.recognise(old) is not None
    kept[0] = structs.replace(key, digests=(*key.digests, fresh.digest), until=(None, None))
    assert await book.recognise(fresh) is not None
    assert len(reads) == 2
    begun = asyncio.get_running_loop().time()
    for _ in range(200):
        assert await book.recognise(rules.Presented(key.key_id, b"wrong")) is None
    windows = (asyncio.get_running_loop().time() - begun) / ROTATED_SECONDS
    assert len(reads) <= 3 + windows


# Made as `holdshort keys create` makes them.
FIRST, SECOND = (rules.mint(bytes([number]) * ENTROPY_BYTES)[1] for number in (1, 2))


@pytest.mark.parametrize("other", [FIRST, SECOND], ids=["the_same_key", "another_key"])
async def test_of_two_replicas_that_start_at_once_one_brings_the_first_key(database: Database, sql: Sql, other: str):
    async with in_process(database) as one, in_process(database) as two:
        # Both have seen that there is none, and go on together.
        await sql.execute("SELECT pg_advisory_lock(hashtextextended('holdshort.keys', 0))")
        starts = [asyncio.create_task(adopt(api, text)) for api, text in ((one, FIRST), (two, other))]
        await wait_until_any_blocked(sql, 2)
        await sql.execute("SELECT pg_advisory_unlock(hashtextextended('holdshort.keys', 0))")
        adopted = await asyncio.gather(*starts)
        assert sorted(adopted) == [False, True]
        assert await sql.fetchval("SELECT count(*) FROM api_keys") == 1
        assert await sql.fetchval("SELECT count(*) FROM key_secrets") == 1


async def adopt(api: Api, text: str) -> bool:
    async with api.runtime.transaction() as conn:
        return await access.adopt(conn, text, BOOTSTRAP, SETUP) is not None


async def test_a_first_key_that_was_revoked_does_not_come_back(database: Database):
    async with in_process(database, bootstrap_admin_key=FIRST, open_mode=False) as api:
        key = rules.read(FIRST)
        assert key is not None
        admin = Caller(api, Key(key.key_id, FIRST))
        await admin.must("GET", "/executions")
        async with api.runtime.transaction() as conn:
            await access.revoke(conn, key.key_id, SETUP)
    async with in_process(database, bootstrap_admin_key=FIRST, open_mode=False) as api:
        assert problem(await Caller(api, admin.key)("GET", "/executions")) == (401, "invalid_key")
        assert await count(api, "SELECT count(*) FROM api_keys") == 1
    async with in_process(database, bootstrap_admin_key=SECOND, open_mode=True) as api:
        assert not api.runtime.open
        assert await count(api, "SELECT count(*) FROM api_keys") == 1


async def test_what_stands_open_closes_once_a_key_is_made_elsewhere(database: Database):
    async with two(database) as (first, second):
        await first.asked()
        assert (await second.get("/executions")).status_code == 200
        waiting = asyncio.create_task(second.get("/executions/run-1/approval-status", wait=60))
        await made(first, scopes=("review",))
        for replica in (first, second):
            async with asyncio.timeout(5):
                while (await replica.get("/executions")).status_code != 401:
                    await asyncio.sleep(0.01)
            assert problem(await replica.post("/executions", {"node_id": "n"})) == (401, "not_authenticated")
        async with asyncio.timeout(5):
            assert problem(await waiting) == (401, "not_authenticated")


async def test_of_two_keys_that_register_a_node_at_once_one_owns_it(database: Database, sql: Sql, watcher: Sql):
    async with two(database) as (first, second):
        rivals = [await caller(first, "agent"), await caller(second, "agent")]
        for replica in (first, second):
            await replica.runtime.settle_access()
        body = {"id": "node-1", "base_url": "http://127.0.0.1:9", "reasoners": []}
        async with sql.transaction():
            await sql.execute("LOCK TABLE node_owners IN SHARE MODE")
            calls = [asyncio.create_task(rival("POST", "/nodes/register", body)) for rival in rivals]
            await wait_until_any_blocked(watcher, 2)
        answers = await asyncio.gather(*calls)
        assert sorted(each.status_code for each in answers) == [201, 403]
        winner = rivals[[each.status_code for each in answers].index(201)]
        assert await sql.fetchval("SELECT key_id FROM node_owners") == winner.key.key_id
        assert await sql.fetchval("SELECT count(*) FROM history WHERE type = 'node.owned'") == 1


async def test_a_revoked_keys_node_is_nobodys_to_take_until_it_is_moved(database: Database):
    async with in_process(database) as api:
        gone, heir = await caller(api, "agent"), await caller(api, "agent")
        approval = await gone.asks("run-1", "node-1")
        async with api.runtime.transaction() as conn:
            await access.revoke(conn, gone.key.key_id, SETUP)
        bound = await caller(api, "agent", node_id="node-1")
        body = {"id": "node-1", "base_url": "http://127.0.0.1:9", "reasoners": []}
        for agent in (heir, bound):
            for path, sent in (("/nodes/register", body), ("/executions", {"node_id": "node-1"})):
                assert problem(await agent("POST", path, sent)) == (403, "node_owned")
            assert problem(await agent("POST", "/nodes/node-1/heartbeat")) == (403, "node_owned")
            assert (await agent("GET", f"/approvals/{approval}")).status_code == 404
        async with api.runtime.transaction() as conn:
            await access.move_node(conn, "node-1", heir.key.key_id, SETUP)
        await heir.must("POST", "/nodes/register", body)
        assert (await heir.must("GET", f"/approvals/{approval}"))["status"] == "pending"
        assert problem(await bound("POST", "/nodes/register", body)) == (403, "node_owned")


async def test_a_bound_key_registers_its_own_node_only(database: Database):
    async with in_process(database) as api:
        bound = await caller(api, "agent", node_id="node-1")
        for node in ("node-2", "node-1.x", "node-1 ", "NODE-1"):
            body = {"id": node, "base_url": "http://127.0.0.1:9", "reasoners": []}
            reply = await bound("POST", "/nodes/register", body)
            assert problem(reply) in {(403, "node_owned"), (422, "invalid_field")}, node
        await bound.registers("node-1")
        assert await count(api, "SELECT count(*) FROM node_owners") == 1
