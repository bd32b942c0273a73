"""Twelve hours unused, seven days at most, and never longer than the key and the very secret that opened it."""

import os
from typing import Any

import pytest

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.workers.session_keeper import SessionKeeper
from tests.app import Api, in_process
from tests.inbox.person import Person, signed_in
from tests.inbox.test_a_session_is_one_persons import history
from tests.keys import Keys
from tests.postgres import Database

OPERATOR = Actor(ActorKind.PERSON, "operator", "cli")
# What the clock has moved on, in SQL, and whether the session holds then.
MOVED = {
    "just under twelve hours unused": ("seen_at = clock_timestamp() - interval '11:59:00'", True),
    "twelve hours unused": ("seen_at = clock_timestamp() - interval '12:00:00'", False),
    "used all the time for just under seven days": (
        "created_at = clock_timestamp() - interval '6 days 23:59'",
        True,
    ),
    "used all the time for seven days": ("created_at = clock_timestamp() - interval '7 days'", False),
    "ended elsewhere": ("ended_at = clock_timestamp()", False),
}


async def test_the_databases_clock_rules(database: Database, guarded: Api, keys: Keys, sql: Any):
    people = {name: await signed_in(guarded, keys.review) for name in MOVED}
    for (change, _), row in zip(
        MOVED.values(), await sql.fetch("SELECT digest FROM sessions ORDER BY created_at"), strict=True
    ):
        await sql.execute(f"UPDATE sessions SET {change} WHERE digest = $1", row["digest"])
    # Another replica, which has not seen the sessions before.
    async with in_process(database) as other:
        for name, (_, holds) in MOVED.items():
            people[name].api = other
            assert ((await people[name].get("/inbox")).status_code == 200) is holds, name
            assert (await people[name].post("/inbox/sign-out", {})).headers["location"] == "/inbox/sign-in", name
    ended = await sql.fetchval("SELECT count(*) FROM history WHERE type = 'session.ended'")
    assert ended == sum(holds for _, holds in MOVED.values())


async def test_what_is_over_is_ended_and_said_why(guarded: Api, keys: Keys, sql: Any):
    names = ("idle", "too_old", "key", "fresh")
    people = {name: await signed_in(guarded, keys.admin if name == "key" else keys.review) for name in names}
    rows = await sql.fetch("SELECT digest FROM sessions ORDER BY created_at")
    idle, old, _, _ = (row["digest"] for row in rows)
    await sql.execute("UPDATE sessions SET seen_at = seen_at - interval '12 hours' WHERE digest = $1", idle)
    await sql.execute("UPDATE sessions SET created_at = created_at - interval '7 days' WHERE digest = $1", old)
    await revoke(guarded, keys.admin)
    keeper = SessionKeeper(guarded.runtime)
    await keeper.step()
    ended = [row for row in await history(sql) if row[0] == "session.ended"]
    assert sorted(row[6] for row in ended) == ["idle", "key", "too_old"]
    assert {row[1:4] for row in ended} == {("system", "holdshort", "sessions")}
    await SessionKeeper(guarded.runtime).step()
    assert len([row for row in await history(sql) if row[0] == "session.ended"]) == 3
    assert (await people["fresh"].get("/inbox")).status_code == 200
    await sql.execute("UPDATE sessions SET ended_at = ended_at - interval '1 day' WHERE ended_at IS NOT NULL")
    await SessionKeeper(guarded.runtime).step()
    assert await sql.fetchval("SELECT count(*) FROM sessions") == 1


async def test_use_is_kept_once_a_minute_and_what_scripts_do_is_none(guarded: Api, ann: Person, sql: Any):
    keeper = SessionKeeper(guarded.runtime)
    await ann.get("/inbox")
    await keeper.step()
    opened = await sql.fetchrow("SELECT created_at, seen_at FROM sessions")
    assert (opened["seen_at"] - opened["created_at"]).total_seconds() < 1
    await sql.execute("UPDATE sessions SET seen_at = seen_at - interval '61 seconds'")
    before = await sql.fetchval("SELECT seen_at FROM sessions")
    forget(guarded)
    await ann.get("/inbox/settled?ids=")
    await ann.get("/inbox", **{"Sec-Fetch-Dest": "empty"})
    await keeper.step()
    assert await sql.fetchval("SELECT seen_at FROM sessions") == before
    for _ in range(3):
        await ann.get("/inbox")
    await keeper.step()
    after = await sql.fetchval("SELECT seen_at FROM sessions")
    assert (after - before).total_seconds() >= 61
    await ann.get("/inbox")
    await keeper.step()
    assert await sql.fetchval("SELECT seen_at FROM sessions") == after


async def test_a_use_that_could_not_be_kept_is_tried_again(guarded: Api, ann: Person, sql: Any):
    keeper = SessionKeeper(guarded.runtime)
    await sql.execute("UPDATE sessions SET seen_at = seen_at - interval '1 hour'")
    before = await sql.fetchval("SELECT seen_at FROM sessions")
    forget(guarded)
    await ann.get("/inbox")
    await sql.execute("ALTER TABLE sessions ADD CONSTRAINT refuses CHECK (false) NOT VALID")
    with pytest.raises(Exception, match="refuses"):
        await keeper.step()
    await sql.execute("ALTER TABLE sessions DROP CONSTRAINT refuses")
    await keeper.step()
    assert await sql.fetchval("SELECT seen_at FROM sessions") > before


async def test_a_revoked_or_expired_key_ends_its_sessions(database: Database, guarded: Api, keys: Keys, sql: Any):
    ann, bob = await signed_in(guarded, keys.review), await signed_in(guarded, keys.operator)
    await revoke(guarded, keys.review)
    await sql.execute("UPDATE api_keys SET expires_at = clock_timestamp() WHERE name = 'operator'")
    async with in_process(database) as other:
        for person in (ann, bob):
            person.api = other
            assert (await person.get("/inbox")).status_code == 303


async def test_a_session_ends_with_the_secret_that_opened_it(database: Database, guarded: Api, keys: Keys):
    before = await signed_in(guarded, keys.review)
    new = await rotate(guarded, keys.review, others_for=60)
    assert (await before.get("/inbox")).status_code == 200
    await rotate(guarded, new, others_for=0)
    async with in_process(database) as other:
        before.api = other
        assert (await before.get("/inbox")).status_code == 303


async def revoke(api: Api, key: str) -> None:
    async with api.runtime.transaction() as conn:
        await access.revoke(conn, key.split("_")[1], OPERATOR)


async def rotate(api: Api, key: str, *, others_for: float) -> str:
    async with api.runtime.transaction() as conn:
        rotated = access.rotate(
            conn, key.split("_")[1], entropy=os.urandom(ENTROPY_BYTES), others_for=others_for, actor=OPERATOR
        )
        return (await rotated)[1]


def forget(api: Api) -> None:
    """Have what is known of sessions looked up anew."""
    api.runtime.sessions._entries.clear()
