"""A change of a callback, a delivery, a key or an owner is a row of history: who did it, what was before and after."""

import json
from typing import Any

import pytest

from controlplane.domain.access import Principal
from controlplane.domain.deliveries import Attempt
from controlplane.domain.errors import NodeOwned
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.keys import Key, Scope
from controlplane.services import access, deliveries
from controlplane.services.access import Wanted
from tests.factories import AGENT, OPERATOR
from tests.services.agents import HERE, THERE, Agents
from tests.services.store import Rows, Store

ADMIN = Actor(ActorKind.PERSON, "ada", "api", "10.0.0.1", "key000000001")
# A path may be a secret, so only the origin is told.
SECRET_PATH = "/hooks/hunter22?token=hunter22"


async def told(rows: Rows, type_: str) -> list[tuple[Any, ...]]:
    """Who, from what and to what, of each row of a type."""
    found = await rows.sql.fetch("SELECT actor_kind, actor_name, data FROM history WHERE type = $1 ORDER BY seq", type_)
    data = [json.loads(row["data"]) for row in found]
    assert all({"from", "to"} <= each.keys() for each in data)
    return [(row["actor_kind"], row["actor_name"], d["from"], d["to"]) for row, d in zip(found, data, strict=True)]


async def decided(store: Store, url: str = HERE + SECRET_PATH) -> str:
    await store.start()
    approval = await store.ask(callback_url=url)
    await store.decide(approval.approval_id)
    return approval.approval_id


async def test_a_callback_that_its_agent_moves(store: Store, rows: Rows):
    await store.start()
    approval = await store.ask()
    await store.ask(callback_url="http://one:80" + SECRET_PATH)
    await store.set_callback(approval.approval_id, "https://two" + SECRET_PATH)
    assert await told(rows, "approval.callback_changed") == [
        ("agent", "node-1", None, "http://one:80"),
        ("agent", "node-1", "http://one:80", "https://two:443"),
    ]
    assert await rows.value("SELECT bool_or(data::text LIKE '%hunter22%') FROM history") is False


async def test_what_follows_an_agent_to_where_it_is(agents: Agents, store: Store, rows: Rows):
    await agents.register("i1", HERE)
    approval_id = await decided(store, HERE + "/webhooks")
    await agents.silence("i1")
    await agents.register("i2", THERE)
    assert await agents.follow() == 1
    assert await told(rows, "delivery.moved") == [
        ("system", "holdshort", "http://127.0.0.1:9001", "http://127.0.0.1:9002")
    ]
    assert await rows.column("SELECT approval_id FROM history WHERE type = 'delivery.moved'") == [approval_id]


async def test_an_end_that_is_told_again(store: Store, rows: Rows):
    approval_id = await decided(store)
    await store.deliver()
    await store.ask(callback_url=HERE + SECRET_PATH)
    await store.set_callback(approval_id, THERE)
    told_again = (
        "SELECT actor_name || ' ' || (data ->> 'to') FROM history WHERE type = 'delivery.told_again' ORDER BY seq"
    )
    assert await rows.column(told_again) == ["node-1 http://127.0.0.1:9001", "node-1 http://127.0.0.1:9002"]


async def test_every_end_of_a_delivery_and_its_way_back(store: Store, rows: Rows):
    await decided(store)
    (claimed,) = await store.claim()
    await store.settle(claimed, Attempt(410))
    for _ in range(2):
        async with store.tx() as conn:
            await deliveries.redrive(conn, claimed.delivery_id, OPERATOR)
    await store.report(ExecutionStatus.FAILED)
    assert await told(rows, "delivery.dead") == [("system", "holdshort", "pending", "dead")]
    assert await told(rows, "delivery.redriven") == [
        ("person", "operator", "dead", "pending"),
        ("person", "operator", "pending", "pending"),
    ]
    assert await told(rows, "delivery.obsolete") == [("agent", "node-1", "pending", "obsolete")]


async def test_a_delivery_that_arrived_after_all(store: Store, rows: Rows):
    await decided(store)
    (claimed,) = await store.claim()
    await store.report(ExecutionStatus.SUCCEEDED)
    assert await store.settle(claimed, Attempt(200))
    assert await told(rows, "delivery.delivered") == [("system", "holdshort", "obsolete", "delivered")]


async def make(store: Store, name: str, number: int = 0, **wanted: Any) -> Key:
    async with store.tx() as conn:
        fields = {"scopes": ("agent",)} | wanted
        return (await access.create(conn, Wanted(name=name, **fields), entropy=bytes([number]) * 32, actor=ADMIN))[0]


async def test_a_keys_life(store: Store, rows: Rows):
    key = await make(store, "builder", node_id="node-1", allow=("10.1.0.0/16:8001",))
    async with store.tx() as conn:
        await access.rotate(conn, key.key_id, entropy=bytes([9]) * 32, others_for=60.0, actor=ADMIN)
    for _ in range(2):
        async with store.tx() as conn:
            await access.revoke(conn, key.key_id, ADMIN)
    found = await rows.sql.fetch("SELECT * FROM history ORDER BY seq")
    assert [row["type"] for row in found] == ["key.created", "key.rotated", "key.revoked"]
    for row in found:
        who = (row["actor_kind"], row["actor_id"], row["actor_name"], row["actor_via"], row["actor_address"])
        assert who == ("person", "key000000001", "ada", "api", "10.0.0.1")
    created, rotated, revoked = (json.loads(row["data"]) for row in found)
    assert created == {
        "key_id": key.key_id,
        "name": "builder",
        "scopes": ["agent"],
        "allow": ["10.1.0.0/16:8001"],
        "expires_at": None,
    }
    assert rotated == created | {"others_for": 60.0}
    assert revoked == created | {"last_used_at": None}


async def test_whose_a_node_is(store: Store, rows: Rows):
    first, second = await make(store, "first", 1), await make(store, "second", 2)
    stale = Principal(key_id=first.key_id, name="first", scopes=frozenset({Scope.AGENT}))
    for _ in range(2):
        async with store.tx() as conn:
            await access.own(conn, stale, "node-1", AGENT)
    async with store.tx() as conn:
        await access.move_node(conn, "node-1", second.key_id, ADMIN)
    assert await told(rows, "node.owned") == [("agent", "node-1", None, first.key_id)]
    assert await told(rows, "node.moved") == [("person", "ada", first.key_id, second.key_id)]
    with pytest.raises(NodeOwned):
        async with store.tx() as conn:
            await access.own(conn, stale, "node-1", AGENT)
