"""Instances come, renew their leases and go; two of a node live side by side, and never two at one address."""

import asyncio

import pytest

from controlplane.domain.errors import FieldFault, NodeNotFound, ReasonerNotFound
from controlplane.domain.nodes import Beat, InstanceStatus, Reasoner, Resume
from controlplane.services import nodes
from controlplane.storage import dispatches
from tests.services.agents import HERE, THERE, Agents
from tests.services.store import Rows, Store

SEVEN_DAYS_AGO = "UPDATE instances SET gone_at = clock_timestamp() - interval '7 d 1 s' WHERE status = 'gone'"
ROW = "SELECT xmin::text || ctid::text FROM instances WHERE instance_id = 'i1'"


async def test_another_at_the_same_address_replaces_it(agents: Agents):
    await agents.register("i1")
    await agents.register("i2")
    assert await agents.states() == {"i1": "gone replaced", "i2": "live"}
    assert await agents.facts() == ["node.registered i1", "node.gone i1", "node.registered i2"]


async def test_two_of_a_node_live_side_by_side(agents: Agents):
    await agents.register("i1", HERE)
    await agents.register("i2", THERE)
    assert await agents.states() == {"i1": "live", "i2": "live"}
    for each in ("i1", "i2"):
        assert (await agents.beat(each)).instance_id == each


async def test_two_nodes_may_say_the_same_address(agents: Agents):
    await agents.register("i1", HERE)
    await agents.register("i2", HERE, node_id="node-2")
    assert await agents.states() == {"i1": "live", "i2": "live"}


async def test_the_same_again_is_one_instance_and_no_news(agents: Agents, rows: Rows):
    await agents.register()
    await agents.pass_lease("i1")
    await agents.register()
    assert await agents.states() == {"i1": "live"}
    assert await agents.facts() == ["node.registered i1"]
    assert await rows.value("SELECT lease_until > clock_timestamp() + interval '14 s' FROM instances")


async def test_a_gone_one_must_register_again_and_is_there_then(agents: Agents):
    await agents.register()
    assert await agents.silence("i1") == 1
    with pytest.raises(NodeNotFound):
        await agents.beat()
    await agents.register()
    assert (await agents.beat()).status is InstanceStatus.LIVE
    assert await agents.states() == {"i1": "live"}
    assert await agents.facts() == ["node.registered i1", "node.gone i1", "node.registered i1"]


@pytest.mark.parametrize(("node_id", "instance_id"), [("node-1", "i2"), ("node-2", "i1"), ("node-2", None)])
async def test_what_never_registered_has_no_lease_to_renew(agents: Agents, node_id: str, instance_id: str | None):
    await agents.register()
    with pytest.raises(NodeNotFound):
        await agents.beat(instance_id, node_id=node_id)
    with pytest.raises(NodeNotFound):
        await agents.shut_down(instance_id, node_id)
    assert await agents.states() == {"i1": "live"}


async def test_only_a_passed_lease_ends_an_instance(agents: Agents, store: Store):
    await agents.register("i1", HERE)
    await agents.register("i2", THERE)
    assert await agents.expire() == 0
    assert await agents.silence("i1") == 1
    assert store.changes.work
    assert await agents.expire() == 0
    assert await agents.states() == {"i1": "gone lease", "i2": "live"}
    assert await agents.facts() == ["node.registered i1", "node.registered i2", "node.gone i1"]


async def test_a_draining_one_loses_its_lease_too(agents: Agents):
    await agents.register()
    await agents.beat("i1", Beat("draining"))
    assert await agents.silence("i1") == 1


async def test_a_silence_that_nobody_watched_is_not_theirs(agents: Agents):
    await agents.register("own", HERE)
    await agents.register("short", THERE, lease_seconds=2.0)
    await agents.register("long", "http://127.0.0.1:9003", lease_seconds=90.0)
    await agents.pass_lease("own", "short", "long")
    assert await agents.expire(watched_seconds=1.9) == 0
    assert await agents.expire(watched_seconds=2.0) == 1
    assert await agents.expire(watched_seconds=14.9) == 0
    assert await agents.states() == {"own": "live", "short": "gone lease", "long": "live"}
    assert await agents.expire(watched_seconds=15.0) == 2


async def test_two_sweepers_share_what_is_silent(agents: Agents, store: Store):
    for number in range(6):
        await agents.register(f"i{number}", f"http://127.0.0.1:{9000 + number}")
    await agents.pass_lease(*(f"i{number}" for number in range(6)))
    async with store.tx() as one, store.tx() as other:
        first = await nodes.expire_leases(one, watched_seconds=60, limit=4)
        second = await nodes.expire_leases(other, watched_seconds=60, limit=4)
    assert (first, second) == (4, 2)
    assert (await agents.facts())[6:] == [f"node.gone i{number}" for number in range(6)]


async def test_a_sign_that_comes_first_saves_the_lease(agents: Agents, rows: Rows, watcher: Rows):
    await agents.register()
    await agents.pass_lease("i1")
    async with rows.holding("SELECT 1 FROM instances FOR UPDATE"):
        (beating,) = await watcher.queue(agents.beat())
        # The row is held, so the sweep passes it by.
        assert await Agents(agents.store, watcher).expire() == 0
    await beating
    assert await agents.expire() == 0
    assert await agents.states() == {"i1": "live"}


async def test_a_sign_that_comes_second_finds_it_gone(agents: Agents, rows: Rows, watcher: Rows):
    await agents.register()
    await agents.pass_lease("i1")
    gone = "UPDATE instances SET status = 'gone', gone_at = clock_timestamp(), gone_reason = 'lease'"
    async with rows.holding(gone):
        (beating,) = await watcher.queue(agents.beat())
    with pytest.raises(NodeNotFound):
        await beating
    assert await agents.states() == {"i1": "gone lease"}


async def test_a_sign_is_written_only_when_it_matters(agents: Agents, rows: Rows):
    await agents.register()
    row = await rows.value(ROW)
    for _ in range(3):
        await agents.beat()
    assert await rows.value(ROW) == row
    await rows.sql.execute("UPDATE instances SET lease_until = clock_timestamp() + interval '9.9 s'")
    row = await rows.value(ROW)
    await agents.beat()
    assert await rows.value(ROW) != row
    assert await rows.value("SELECT lease_until > clock_timestamp() + interval '14 s' FROM instances")


async def test_draining_is_written_at_once_and_told_once(agents: Agents, store: Store):
    await agents.register()
    assert (await agents.beat("i1", Beat("draining"))).status is InstanceStatus.DRAINING
    assert store.changes.work
    await agents.beat("i1", Beat("draining"))
    assert not store.changes.work
    assert (await agents.facts())[1:] == ["node.draining i1"]
    assert (await agents.beat("i1", Beat("ready"))).status is InstanceStatus.LIVE
    assert store.changes.work


async def test_a_sign_without_an_id_is_the_newest_ones_and_an_end_the_oldest_ones(agents: Agents):
    await agents.register("i1", HERE)
    await agents.register("i2", THERE)
    assert (await agents.beat(None)).instance_id == "i2"
    await agents.shut_down(None)
    assert await agents.states() == {"i1": "gone shutdown", "i2": "live"}
    await agents.shut_down(None)
    with pytest.raises(NodeNotFound):
        await agents.beat(None)
    await agents.shut_down(None)


async def test_to_say_twice_that_one_goes_is_to_say_it_once(agents: Agents):
    await agents.register()
    await agents.shut_down()
    await agents.shut_down()
    assert await agents.states() == {"i1": "gone shutdown"}
    assert await agents.facts() == ["node.registered i1", "node.gone i1"]


async def test_twenty_registrations_at_once_are_one_instance(agents: Agents, rows: Rows):
    await asyncio.gather(*(agents.register() for _ in range(20)))
    assert await agents.states() == {"i1": "live"}
    assert await agents.facts() == ["node.registered i1"]
    assert await rows.column("SELECT node_id FROM nodes") == ["node-1"]


async def test_of_twenty_at_one_address_one_is_left(agents: Agents):
    await asyncio.gather(*(agents.register(f"i{number}") for number in range(20)))
    states = list((await agents.states()).values())
    assert (states.count("live"), states.count("gone replaced")) == (1, 19)


async def test_registrations_that_meet_in_both_orders_never_deadlock(agents: Agents, rows: Rows, watcher: Rows):
    await agents.register("i1", HERE)
    await agents.register("i2", THERE)
    async with rows.holding("SELECT 1 FROM nodes FOR UPDATE"):
        tasks = await watcher.queue(agents.register("i1", THERE), agents.register("i2", HERE), agents.register("i3"))
    await asyncio.gather(*tasks)
    there = await rows.column("SELECT base_url FROM instances WHERE status <> 'gone' ORDER BY base_url")
    assert len(there) == len(set(there))


async def test_an_id_is_one_nodes(agents: Agents):
    await agents.register("i1")
    with pytest.raises(FieldFault) as refused:
        await agents.register("i1", THERE, node_id="node-2")
    assert refused.value.field == "instance_id"
    assert await agents.states() == {"i1": "live"}


async def test_a_registration_wakes_what_waits_for_its_node(agents: Agents, store: Store, rows: Rows):
    await agents.register(node_id="node-2", instance_id="other")
    await rows.sql.execute(
        "INSERT INTO executions (execution_id, node_id, status, dispatched) VALUES ('run-1', 'node-1', 'queued', true)"
    )
    async with store.tx() as conn:
        await dispatches.enqueue(conn, "run-1", "node-1", 60)
    await rows.sql.execute("UPDATE dispatches SET due_at = clock_timestamp() + interval '1 min'")
    await agents.register()
    assert store.changes.work
    assert await rows.value("SELECT due_at <= clock_timestamp() FROM dispatches")


async def test_a_reasoner_is_known_as_it_was_registered_last(agents: Agents, store: Store):
    slow = Reasoner(name="slow", timeout_seconds=1.5, resume=Resume.AT_START, input_schema={"type": "object"})
    await agents.register(reasoners=(Reasoner(name="work"), slow))
    async with store.tx() as conn:
        found = await nodes.known_reasoner(conn, "node-1", "slow")
        assert (found.name, found.timeout_seconds, found.resume) == ("slow", 1.5, Resume.AT_START)
        assert await nodes.known_reasoner(conn, "node-1", "work") == Reasoner(name="work")
    await agents.silence("i1")
    async with store.tx() as conn:
        assert (await nodes.known_reasoner(conn, "node-1", "work")).name == "work"
    await agents.register(reasoners=(Reasoner(name="other"),))
    async with store.tx() as conn:
        with pytest.raises(ReasonerNotFound) as wrong:
            await nodes.known_reasoner(conn, "node-1", "work")
        with pytest.raises(NodeNotFound) as unknown:
            await nodes.known_reasoner(conn, "node-2", "work")
    assert wrong.value.extra == {"registered": ["other"]}
    assert unknown.value.extra == {"registered": ["node-1"]}


async def test_not_more_are_named_than_can_be_read(agents: Agents, store: Store):
    many = tuple(Reasoner(name=f"r{number}") for number in range(60))
    for number in range(55):
        await agents.register(f"i{number}", node_id=f"node-{number}", reasoners=many)
    async with store.tx() as conn:
        with pytest.raises(NodeNotFound) as unknown:
            await nodes.known_reasoner(conn, "nobody", "work")
        with pytest.raises(ReasonerNotFound) as wrong:
            await nodes.known_reasoner(conn, "node-0", "work")
    for refused in (unknown, wrong):
        named = refused.value.extra["registered"]
        assert isinstance(named, list)
        assert len(named) == nodes.NAMED_AT_MOST


async def test_what_is_gone_for_a_week_is_forgotten(agents: Agents, rows: Rows):
    await agents.register("i1", HERE)
    await agents.register("i2", THERE)
    await agents.silence("i1")
    assert await agents.forget() == 0
    await rows.sql.execute(SEVEN_DAYS_AGO)
    assert await agents.forget() == 1
    assert await agents.states() == {"i2": "live"}


HOLDS = {
    "a run": "UPDATE executions SET dispatched = true, fence = 1, instance_id = 'i1'",
    "an end that its code has not seen": "UPDATE executions SET dispatched = true, fence = 1, instance_id = 'i1',"
    " status = 'cancelled', pending_approvals = 0, ended_at = now(), outcome_pending = true",
    "a question": "UPDATE executions SET dispatched = false",
    "a delivery": "INSERT INTO deliveries (delivery_id, approval_id, execution_id, node_id, status, url, target,"
    " created_at, told_at, due_at, resting) SELECT 'dlv_1', approval_id, execution_id, node_id, 'pending',"
    " callback_url, 't', now(), now(), now(), true FROM approvals",
}


@pytest.mark.parametrize("held", HOLDS)
async def test_what_still_holds_something_is_kept(agents: Agents, store: Store, rows: Rows, held: str):
    await agents.register()
    await store.start()
    await store.ask(callback_url=f"{HERE}/webhooks/approval")
    await agents.silence("i1")
    if held != "a question":
        await rows.sql.execute("UPDATE instances SET callbacks_left = false")
    await rows.sql.execute(SEVEN_DAYS_AGO)
    await rows.sql.execute(HOLDS[held])
    assert await agents.forget() == 0
    await rows.sql.execute("DELETE FROM deliveries; UPDATE executions SET instance_id = NULL")
    await rows.sql.execute("UPDATE approvals SET callback_url = NULL")
    assert await agents.forget() == 1
