"""An agent that dies and comes back at another address is told there what was decided, before and after it came."""

import asyncio
from typing import Any

from tests.app import PATIENCE_SECONDS, Api
from tests.receiver import Receiver, hang, receiver, reply

PATH = "/webhooks/approval"


async def join(api: Api, instance_id: str, base_url: str) -> None:
    """An agent as others write them: no run of it is started again, so only the callback wakes it."""
    body = {"id": "node-1", "instance_id": instance_id, "base_url": base_url}
    answered = await api.post("/nodes/register", body)
    assert answered.status_code == 201, answered.text


def base_of(told: Receiver) -> str:
    return f"http://127.0.0.1:{told.port}/agent"


def approvals_told(told: Receiver) -> list[str]:
    return [got.body["approval_id"] for got in told.got]


async def gone_address() -> str:
    """An address that nobody listens at any more."""
    async with receiver() as closed:
        return base_of(closed)


async def lose(sql: Any, api: Api) -> None:
    """Let the agent's lease pass as it does after a while of silence."""
    await sql.execute("UPDATE instances SET lease_seconds = 0.01, lease_until = clock_timestamp()")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (await api.get("/nodes")).json()["nodes"][0]["instances"]:
            pass


async def test_decided_while_it_was_away(api: Api, told: Receiver, sql: Any):
    old = await gone_address()
    await join(api, "i1", old)
    approval = await api.asked(callback_url=old + PATH)
    await lose(sql, api)
    await api.decide(approval, feedback="fine")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (await api.get("/deliveries")).json()["deliveries"][0]["resting"]:
            pass
    await join(api, "i2", base_of(told))
    (got,) = await told.wait_for(1)
    assert (got.path, got.body["approval_id"], got.body["feedback"]) == ("/agent" + PATH, approval, "fine")


async def test_decided_after_it_came_back(api: Api, told: Receiver, sql: Any):
    old = await gone_address()
    await join(api, "i1", old)
    approval = await api.asked(callback_url=old + PATH)
    await lose(sql, api)
    await join(api, "i2", base_of(told))
    await api.decide(approval)
    (got,) = await told.wait_for(1)
    assert (got.path, got.body["approval_id"]) == ("/agent" + PATH, approval)


async def test_undelivered_when_it_went(api: Api, told: Receiver):
    async with receiver() as before:
        before.answers = [reply(503)]
        await join(api, "i1", base_of(before))
        approval = await api.asked(callback_url=base_of(before) + PATH)
        await api.decide(approval)
        await before.wait_for(1)
        await api.post("/nodes/node-1/shutdown", {"instance_id": "i1"})
        await join(api, "i2", base_of(told))
        await told.wait_for(1)
    assert approvals_told(told) == [approval]


async def test_told_of_a_try_that_was_under_way_when_it_went(api: Api, told: Receiver):
    released = asyncio.Event()
    async with receiver() as before:
        before.answers = [hang(released, reply(500))]
        await join(api, "i1", base_of(before))
        approval = await api.asked(callback_url=base_of(before) + PATH)
        await api.decide(approval)
        await before.wait_for(1)
        await api.post("/nodes/node-1/shutdown", {"instance_id": "i1"})
        await join(api, "i2", base_of(told))
        await told.wait_for(1)
        released.set()
    assert approvals_told(told) == [approval]
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (shown := (await api.get("/deliveries", status="delivered")).json()["deliveries"]):
            pass
    assert shown[0]["url"] == base_of(told) + PATH


async def test_the_same_address_again_is_told_at_once(api: Api, told: Receiver):
    told.answers = [reply(503), reply(503), reply(200)]
    await join(api, "i1", base_of(told))
    approval = await api.asked(callback_url=base_of(told) + PATH)
    await api.decide(approval)
    # The third try would come five seconds after the second.
    await told.wait_for(2)
    began = told.got[-1].at
    await join(api, "i2", base_of(told))
    await told.wait_for(3)
    assert told.got[-1].at - began < 4
    assert approvals_told(told) == [approval] * 3
