"""A call that waits for a person: told in a moment on any replica, and standing for its question while it waits."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.workers.feedback_askers import AskerKeeper
from tests.app import Api, in_process, problem, served, until
from tests.feedback import PENDING, Asker, answer, submit
from tests.keys import SETUP
from tests.postgres import Database

WAITING = {"unique_id": "f-1", "message_for_user": "Go on?", "kind": "yes_no", "wait": True}
LATE = "UPDATE feedback SET expires_at = clock_timestamp() WHERE status = 'pending'"
Replicas = tuple[Api, Api]


@pytest.fixture
async def replicas(database: Database) -> AsyncIterator[Replicas]:
    """Two servers on one database; the second one sees by polling only."""
    async with served(database) as first, served(database, listen=False) as second:
        yield first, second


async def pending(api: Api) -> list[str]:
    return [each["unique_id"] for each in (await api.client.get(PENDING)).json()["requests"]]


async def shown(api: Api, unique_id: str = "f-1") -> None:
    """Wait until a question may be answered."""
    async with asyncio.timeout(10):
        while unique_id not in await pending(api):
            await asyncio.sleep(0.01)


async def key(api: Api, name: str, *scopes: str) -> str:
    async with api.runtime.transaction() as conn:
        made = await access.create(conn, Wanted(name=name, scopes=scopes), entropy=os.urandom(32), actor=SETUP)
    return made[1]


async def test_an_answer_given_anywhere_wakes_whoever_waits_anywhere(replicas: Replicas):
    asker = Asker()
    for unique_id, asked_at, waits_at, answered_at in (
        ("f-1", *replicas, replicas[0]),
        ("f-2", replicas[1], replicas[0], replicas[1]),
    ):
        await asker.ask(asked_at.client, unique_id)
        waiting = asyncio.create_task(answer(waits_at.client, unique_id, wait=60))
        await until(lambda at=waits_at, this=unique_id: this in at.runtime.askers.unique_ids())
        assert (await submit(answered_at.client, "482913", unique_id)).status_code == 200
        assert asker.open(await asyncio.wait_for(waiting, 20), unique_id) == "482913"
        assert waits_at.runtime.askers.unique_ids() == []


async def test_an_end_without_an_answer_wakes_too(replicas: Replicas, sql: Any):
    first, second = replicas
    asker = Asker()
    await asker.ask(first.client)
    waiting = asyncio.create_task(answer(second.client, wait=60))
    await until(second.runtime.askers.unique_ids)
    assert (await first.client.delete("/api/v1/human-feedback/f-1")).json()["outcome"] == "cancelled"
    assert problem(await asyncio.wait_for(waiting, 20)) == (410, "request_cancelled")
    await asker.ask(first.client, "f-2")
    waiting = asyncio.create_task(answer(first.client, "f-2", wait=60))
    await until(first.runtime.askers.unique_ids)
    await sql.execute(LATE)
    assert problem(await asyncio.wait_for(waiting, 20)) == (410, "request_expired")


async def test_a_call_that_waited_in_vain_is_told_so_and_can_wait_again(replicas: Replicas):
    first, second = replicas
    asker = Asker()
    await asker.ask(first.client)
    assert (await answer(first.client, wait=0.2)).json() == {"outcome": "pending"}
    assert problem(await answer(first.client, wait=61)) == (422, "invalid_field")
    assert (await submit(second.client, "x")).status_code == 200
    assert asker.open(await answer(second.client, wait=60)) == "x"


async def test_a_held_call_gets_the_answer_itself(replicas: Replicas):
    first, second = replicas
    held = asyncio.create_task(first.post("/human-feedback", WAITING))
    await shown(second)
    assert problem(await submit(second.client, "perhaps")) == (422, "invalid_answer")
    assert (await submit(second.client, "Approve")).status_code == 200
    reply = await asyncio.wait_for(held, 20)
    assert (reply.status_code, reply.json()) == (200, {"unique_id": "f-1", "outcome": "answered", "response": "yes"})
    assert problem(await answer(first.client)) == (410, "answer_taken")


async def test_a_held_call_is_told_when_it_is_withdrawn_or_late(replicas: Replicas, sql: Any):
    first, second = replicas
    held = asyncio.create_task(first.post("/human-feedback", WAITING))
    late = asyncio.create_task(first.post("/human-feedback", WAITING | {"unique_id": "f-2"}))
    await shown(second)
    await shown(second, "f-2")
    await second.client.delete("/api/v1/human-feedback/f-1")
    assert problem(await asyncio.wait_for(held, 20)) == (410, "request_cancelled")
    await sql.execute(LATE)
    assert problem(await asyncio.wait_for(late, 20)) == (410, "request_expired")


async def test_a_held_call_that_goes_takes_its_question_along_at_once(replicas: Replicas):
    first, second = replicas
    async with httpx.AsyncClient(base_url=first.base, trust_env=False) as client:
        held = asyncio.create_task(client.post("/api/v1/human-feedback", json=WAITING, timeout=60))
        await shown(second)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
    # Long before its 15 s are over, which the sweeper would give it.
    async with asyncio.timeout(10):
        while await pending(second):
            await asyncio.sleep(0.02)
    assert problem(await submit(second.client, "yes")) == (410, "request_cancelled")


async def test_a_server_that_stops_takes_held_calls_along_and_lets_waiting_ones_go_on(database: Database, sql: Any):
    asker = Asker()
    async with served(database) as second:
        async with served(database) as first:
            await asker.ask(first.client)
            held = asyncio.create_task(first.post("/human-feedback", WAITING | {"unique_id": "f-2"}))
            waiting = asyncio.create_task(answer(first.client, wait=60))
            await shown(second, "f-2")
            await until(lambda: len(first.runtime.askers.unique_ids()) == 2)
            first.runtime.stop()
            assert problem(await asyncio.wait_for(held, 20)) == (410, "request_cancelled")
            assert (await asyncio.wait_for(waiting, 20)).json() == {"outcome": "pending"}
        assert await pending(second) == ["f-1"]
        waiting = asyncio.create_task(answer(second.client, wait=60))
        assert (await submit(second.client, "482913")).status_code == 200
        assert asker.open(await asyncio.wait_for(waiting, 20)) == "482913"


async def test_whoever_waits_keeps_the_question_standing(database: Database, sql: Any):
    left = "SELECT extract(epoch FROM waiter_until - clock_timestamp())::float FROM feedback WHERE unique_id = $1"
    async with in_process(database) as api:
        asker = Asker()
        for unique_id in ("f-1", "f-2"):
            await asker.ask(api.client, unique_id)
        await sql.execute("UPDATE feedback SET waiter_until = clock_timestamp() + interval '5 s'")
        with api.runtime.askers.waiting("f-1"):
            await AskerKeeper(api.runtime).step()
        assert 10 < await sql.fetchval(left, "f-1") <= 15
        assert await sql.fetchval(left, "f-2") <= 5
        assert (await answer(api.client, "f-2")).json() == {"outcome": "pending"}
        assert 10 < await sql.fetchval(left, "f-2") <= 15
        # What nobody waited for any more is not brought back by a late sign.
        await sql.execute("UPDATE feedback SET waiter_until = clock_timestamp() - interval '1 ms'")
        with api.runtime.askers.waiting("f-1"):
            await AskerKeeper(api.runtime).step()
        assert await sql.fetchval(left, "f-1") < 0
        assert problem(await answer(api.client, "f-2")) == (410, "request_cancelled")


async def test_those_who_wait_hold_no_connection(database: Database):
    async with in_process(database, pool_size=2) as api:
        asker = Asker()
        for number in range(20):
            await asker.ask(api.client, f"f-{number}")
        waiting = [asyncio.create_task(answer(api.client, f"f-{number}", wait=60)) for number in range(20)]
        await until(lambda: len(api.runtime.askers.unique_ids()) == 20)
        assert api.runtime.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
        for number in range(20):
            assert (await submit(api.client, str(number), f"f-{number}")).status_code == 200
        for number, each in enumerate(await asyncio.gather(*waiting)):
            assert asker.open(each, f"f-{number}") == str(number)


async def test_a_question_is_its_own_keys(database: Database):
    async with in_process(database, open_mode=False) as api:
        keys = [{"X-API-Key": await key(api, name, "agent")} for name in ("asks", "other")]
        review = {"X-API-Key": await key(api, "review", "review")}
        asker = Asker()
        api.client.headers.update(keys[0])
        await asker.ask(api.client)
        for path, method in (("/f-1/answer", "GET"), ("/f-1", "DELETE")):
            for name, expected in ((keys[1], (404, "request_not_found")), (review, (403, "not_allowed"))):
                reply = await api.client.request(method, f"/api/v1/human-feedback{path}", headers=name)
                assert problem(reply) == expected
        same = await api.client.post("/api/v1/human-feedback", json=asker.body(), headers=keys[1])
        assert problem(same) == (409, "duplicate_request")
        assert problem(await submit(api.client, "x")) == (403, "not_allowed")
        sent = {"unique_id": "f-1", "response": "482913"}
        assert (await api.client.post("/api/human-feedback/submit", json=sent, headers=review)).status_code == 200
        assert problem(await api.client.get("/api/v1/human-feedback/f-1/answer", headers=keys[1]))[0] == 404
        assert asker.open(await answer(api.client)) == "482913"


async def test_a_key_that_ends_ends_its_calls_and_a_held_question(database: Database, sql: Any):
    async with served(database, open_mode=False) as api:
        mine = {"X-API-Key": await key(api, "asks", "agent")}
        asker = Asker()
        await api.client.post("/api/v1/human-feedback", json=asker.body(), headers=mine)
        body = WAITING | {"unique_id": "f-2"}
        held = asyncio.create_task(api.client.post("/api/v1/human-feedback", json=body, headers=mine))
        path = "/api/v1/human-feedback/f-1/answer"
        waiting = asyncio.create_task(api.client.get(path, params={"wait": 60}, headers=mine))
        await until(lambda: len(api.runtime.askers.unique_ids()) == 2)
        await sql.execute("UPDATE api_keys SET revoked_at = now()")
        for each in (held, waiting):
            assert problem(await asyncio.wait_for(each, 20)) == (401, "invalid_key")
        assert await sql.fetchval("SELECT status FROM feedback WHERE unique_id = 'f-2'") == "cancelled"
