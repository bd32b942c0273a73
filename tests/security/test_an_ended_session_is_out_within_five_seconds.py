"""However a session ends, it is out on every replica within 5 s: its pages, and the streams that are open under it."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from tests.app import Api, served
from tests.figures import Figures
from tests.inbox.person import Person, signed_in
from tests.postgres import Database
from tests.security.callers import SETUP, Key, made

BOUND_SECONDS = 5.0


class Signed(NamedTuple):
    """A person on two replicas, and the key that they signed in with."""

    people: tuple[Person, Person]
    key: Key


async def signs_out(signed: Signed, _: Any) -> None:
    assert (await signed.people[0].post("/inbox/sign-out", {})).status_code == 303


async def signs_in_anew(signed: Signed, _: Any) -> None:
    again = Person(signed.people[0].api)
    again.cookie = signed.people[0].cookie
    assert (await again.sign_in(signed.key.text)).status_code == 303


async def is_revoked(signed: Signed, _: Any) -> None:
    async with signed.people[0].api.runtime.transaction() as conn:
        await access.revoke(conn, signed.key.key_id, SETUP)


async def is_rotated(signed: Signed, _: Any) -> None:
    async with signed.people[0].api.runtime.transaction() as conn:
        entropy = os.urandom(ENTROPY_BYTES)
        await access.rotate(conn, signed.key.key_id, entropy=entropy, others_for=0, actor=SETUP)


async def expires(signed: Signed, sql: Any) -> None:
    await sql.execute("UPDATE api_keys SET expires_at = clock_timestamp() WHERE key_id = $1", signed.key.key_id)


async def is_too_old(signed: Signed, sql: Any) -> None:
    aged = "UPDATE sessions SET created_at = created_at - interval '7 days' WHERE key_id = $1"
    await sql.execute(aged, signed.key.key_id)


async def is_idle(signed: Signed, sql: Any) -> None:
    idle = "UPDATE sessions SET seen_at = seen_at - interval '12 hours' WHERE key_id = $1"
    await sql.execute(idle, signed.key.key_id)


ENDS: dict[str, Callable[[Signed, Any], Awaitable[None]]] = {
    "signed out": signs_out,
    "signed in anew": signs_in_anew,
    "key revoked": is_revoked,
    "secret rotated": is_rotated,
    "key expired": expires,
    "seven days": is_too_old,
    "twelve hours": is_idle,
}


@pytest.fixture
async def replicas(database: Database) -> AsyncIterator[tuple[Api, Api]]:
    """Two servers on one database, the second without LISTEN."""
    async with served(database) as first, served(database, listen=False) as second:
        yield first, second


async def everywhere(replicas: tuple[Api, Api], name: str) -> Signed:
    """Somebody with a key of their own, known to both replicas."""
    key = await made(replicas[0], scopes=("review",), name=name)
    for replica in replicas:
        await replica.runtime.settle_access()
    first, second = await signed_in(replicas[0], key.text), Person(replicas[1])
    second.cookie = first.cookie
    await second.load()
    return Signed((first, second), key)


async def streamed(person: Person, opened: asyncio.Event) -> float:
    """When a stream that was open came to its end."""
    async with person.api.client.stream("GET", "/inbox/events", headers=person._headers()) as reply:
        assert reply.status_code == 200
        async for _ in reply.aiter_bytes():
            opened.set()
    return time.monotonic()


async def shut_out(person: Person) -> float:
    """When no page was shown any more."""
    while (reply := await person.get("/inbox/apr_0")).status_code != 303:
        assert reply.status_code == 404
        await asyncio.sleep(0.05)
    return time.monotonic()


async def test_every_end_of_a_session_is_known_everywhere(
    database: Database, replicas: tuple[Api, Api], figures: Figures
):
    sql = await database.connect()
    everybody = {name: await everywhere(replicas, name) for name in ENDS}
    stays = await everywhere(replicas, "stays")
    opened = {name: (asyncio.Event(), asyncio.Event()) for name in [*ENDS, "stays"]}
    everybody_and_one = everybody | {"stays": stays}
    streams = {
        name: [asyncio.create_task(streamed(*each)) for each in zip(everybody_and_one[name].people, marks, strict=True)]
        for name, marks in opened.items()
    }
    for marks in opened.values():
        for mark in marks:
            await mark.wait()
    worst = {}
    for name, end in ENDS.items():
        since = time.monotonic()
        await end(everybody[name], sql)
        pages = [asyncio.create_task(shut_out(person)) for person in everybody[name].people]
        async with asyncio.timeout(30):
            worst[name] = max(await asyncio.gather(*pages, *streams[name])) - since
    assert not any(task.done() for task in streams["stays"])
    assert [(await person.get("/inbox")).status_code for person in stays.people] == [200, 200]
    for task in streams["stays"]:
        task.cancel()
    await asyncio.gather(*streams["stays"], return_exceptions=True)
    await sql.close()
    figures("sessions that ended, out everywhere", **{name: f"{took:.2f} s" for name, took in worst.items()})
    assert max(worst.values()) <= BOUND_SECONDS, worst


async def test_what_stood_open_ends_with_the_first_key(database: Database):
    async with served(database) as api:
        anybody, opened = Person(api), asyncio.Event()
        stream = asyncio.create_task(streamed(anybody, opened))
        await opened.wait()
        await made(api, scopes=("review",))
        async with asyncio.timeout(BOUND_SECONDS):
            await stream
        assert (await anybody.get("/inbox")).status_code == 303
