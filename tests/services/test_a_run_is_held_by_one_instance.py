"""A queued run goes to one instance at a time, each time under a higher fence, and a node is never given too much."""

import asyncio

import pytest

from controlplane.domain.errors import StaleInstance
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import asking, dispatch
from controlplane.storage import dispatches
from controlplane.storage.approvals import Wording
from tests.factories import AGENT, asked
from tests.services.fleet import ACCEPTED, LOST, REFUSED, Fleet, ids
from tests.services.store import Rows, Store

Status = ExecutionStatus


async def test_a_claim_sets_the_run_running_under_a_fence(fleet: Fleet, store: Store):
    await fleet.join()
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    run = await store.run("a")
    assert (run.status, run.fence, run.instance_id) == (Status.RUNNING, 1, "i1")
    assert (sent.fence, sent.base_url, sent.input, sent.steps, sent.taken) == (
        1,
        "http://127.0.0.1:9/i1",
        b'{"a": 1}',
        0,
        False,
    )
    assert await fleet.claim() == []
    assert await fleet.settle(sent, ACCEPTED)
    assert await fleet.claim() == []
    assert await fleet.rows.value("SELECT due_at FROM dispatches") is None


async def test_many_dispatchers_at_once_send_each_run_once(fleet: Fleet):
    await fleet.join()
    await fleet.queue(*(f"r{number}" for number in range(30)))
    taken: list[str] = []
    while len(taken) < 30:
        for claims in await asyncio.gather(*(fleet.claim(7) for _ in range(6))):
            taken += ids(claims)
    assert sorted(taken) == sorted(f"r{number}" for number in range(30))
    assert await fleet.claim() == []


async def test_runs_go_out_in_the_order_they_came_and_to_whoever_works_least(fleet: Fleet):
    await fleet.join("i1")
    await fleet.join("i2")
    await fleet.queue("a", "b", "c", "d")
    sent = await fleet.claim()
    assert ids(sent) == ["a", "b", "c", "d"]
    assert sorted(each.instance_id for each in sent) == ["i1", "i1", "i2", "i2"]


async def test_a_node_is_given_no_more_than_it_may_work_on_and_waiting_frees_its_place(fleet: Fleet, store: Store):
    await fleet.join(max_concurrent=2)
    await fleet.queue("a", "b", "c")
    first, second = await fleet.claim()
    assert await fleet.settle(first, ACCEPTED)
    assert await fleet.settle(second, ACCEPTED)
    assert await fleet.claim() == []
    await ask(store, "a", 1)
    assert store.changes.work
    assert ids(await fleet.claim()) == ["c"]


async def test_the_servers_own_limit_holds_where_a_node_names_none(fleet: Fleet):
    await fleet.join()
    await fleet.queue("a", "b")
    assert ids(await fleet.claim(concurrency=1)) == ["a"]
    assert await fleet.claim(concurrency=1) == []


async def test_two_dispatchers_never_give_a_node_too_much(fleet: Fleet, store: Store):
    await fleet.join(max_concurrent=3)
    await fleet.queue(*(f"r{number}" for number in range(12)))
    claims = await asyncio.gather(*(fleet.claim() for _ in range(8)))
    assert sum(len(each) for each in claims) == 3


async def test_nodes_that_have_all_they_may_hide_no_other(fleet: Fleet):
    full = [f"full-{number}" for number in range(dispatch.NODES_A_CLAIM)]
    for node_id in full:
        await fleet.join(f"i-{node_id}", node_id, max_concurrent=1)
        await fleet.queue(f"{node_id}-1", f"{node_id}-2", node_id=node_id)
    assert len(await fleet.claim(limit=100)) == len(full)
    await fleet.join()
    await fleet.queue("a")
    assert ids(await fleet.claim()) == ["a"]


async def test_nothing_is_claimed_for_a_node_without_a_live_instance(fleet: Fleet, store: Store):
    await fleet.join()
    await fleet.lose()
    await fleet.queue("a")
    assert await fleet.claim() == []
    assert (await store.run("a")).status_reason == "waiting_for_node"
    await fleet.join("i2", status="draining")
    assert await fleet.claim() == []
    await fleet.join("i3")
    await fleet.make_due()
    (sent,) = await fleet.claim()
    assert sent.instance_id == "i3"
    assert (await store.run("a")).status_reason is None


async def test_a_run_goes_only_where_its_reasoner_is(fleet: Fleet, store: Store):
    await fleet.join("i1", reasoners=["other"])
    await fleet.queue("a")
    assert await fleet.claim() == []
    run = await store.run("a")
    assert (run.status, run.last_error) == (Status.QUEUED, "no instance of node-1 serves work")
    await fleet.join("i2")
    await fleet.make_due()
    assert [each.instance_id for each in await fleet.claim()] == ["i2"]


async def test_what_nobody_serves_holds_up_nothing_behind_it(fleet: Fleet):
    await fleet.join(max_concurrent=1)
    await fleet.queue("x", "y", reasoner="gone")
    await fleet.queue("a")
    assert ids(await fleet.claim(limit=1)) == ["a"]
    waiting = "SELECT execution_id FROM dispatches WHERE last_error IS NOT NULL AND due_at > now() ORDER BY 1"
    assert await fleet.rows.column(waiting) == ["x", "y"]


async def test_a_node_whose_tries_hang_leaves_room_for_others(fleet: Fleet):
    await fleet.join()
    await fleet.join("i2", "node-2")
    await fleet.queue(*(f"r{number}" for number in range(dispatch.TRIES_A_NODE + 5)))
    await fleet.queue("b", node_id="node-2")
    stuck = await fleet.claim(limit=dispatch.TRIES_A_NODE + 1)
    assert len(stuck) == dispatch.TRIES_A_NODE + 1
    assert {each.node_id for each in stuck} == {"node-1", "node-2"}
    assert await fleet.claim(in_hand={"node-1": dispatch.TRIES_A_NODE}) == []
    assert len(await fleet.claim(in_hand={"node-1": dispatch.TRIES_A_NODE - 1})) == 1


async def test_an_unreachable_instance_is_tried_again_and_another_one_first(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    assert await fleet.settle(sent, REFUSED)
    run = await store.run("a")
    assert (run.status, run.status_reason, run.attempts) == (Status.QUEUED, "dispatch_failed", 1)
    assert run.last_error == "ConnectError: refused"
    assert await fleet.claim() == []
    await fleet.join("i2")
    await fleet.make_due()
    (again,) = await fleet.claim()
    assert (again.instance_id, again.fence, again.attempts) == ("i2", 2, 2)


async def test_a_run_that_nobody_took_in_its_time_fails_with_the_last_error(fleet: Fleet, store: Store):
    await fleet.join()
    await fleet.queue("a", start_within=0.0)
    (sent,) = await fleet.claim()
    assert await fleet.settle(sent, REFUSED)
    assert store.changes.ended == ["a"]
    run = await store.run("a")
    assert (run.status, run.status_reason, run.error) == (
        Status.FAILED,
        "agent_unreachable",
        "ConnectError: refused",
    )
    assert await fleet.claim() == []


@pytest.mark.parametrize("attempt", [ACCEPTED, LOST])
async def test_a_settled_try_that_was_taken_over_writes_nothing(fleet: Fleet, rows: Rows, store: Store, attempt):
    await fleet.join()
    await fleet.queue("a")
    (first,) = await fleet.claim()
    await rows.sql.execute("UPDATE dispatches SET lease_until = now()")
    (second,) = await fleet.claim()
    assert (second.fence, second.claim) == (2, 2)
    assert not await fleet.settle(first, attempt)
    assert (await store.run("a")).status is Status.RUNNING
    assert await fleet.settle(second, ACCEPTED)


async def test_a_run_that_gave_a_sign_is_not_sent_again_though_the_reply_was_lost(fleet: Fleet, store: Store):
    await fleet.join()
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    await ask(store, "a", sent.fence)
    assert not await fleet.settle(sent, LOST)
    assert (await store.run("a")).status is Status.WAITING
    assert await fleet.claim() == []


async def test_a_sign_after_the_try_was_given_up_takes_the_run_out_of_the_queue(fleet: Fleet, store: Store):
    await fleet.join()
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    assert await fleet.settle(sent, LOST)
    assert (await store.run("a")).status is Status.QUEUED
    await ask(store, "a", sent.fence)
    await fleet.make_due()
    assert await fleet.claim() == []
    assert (await store.run("a")).status is Status.WAITING


async def test_a_node_without_replay_is_never_sent_what_a_dead_dispatcher_began_to_write(
    fleet: Fleet, rows: Rows, store: Store
):
    await fleet.join(replay=False)
    await fleet.queue("a", "b")
    first, second = await fleet.claim()
    async with store.tx() as conn:
        assert await dispatches.mark_writing(conn, "a", first.claim)
        assert not await dispatches.mark_writing(conn, "b", second.claim + 1)
    await rows.sql.execute("UPDATE dispatches SET lease_until = now()")
    assert ids(await fleet.claim()) == ["b"]
    run = await store.run("a")
    assert (run.status, run.last_error) == (
        Status.RUNNING,
        "the process that sent it was not heard of again; the agent may have it",
    )
    assert (await store.report(Status.SUCCEEDED, "a")).status is Status.SUCCEEDED


async def test_an_earlier_fence_writes_nothing(fleet: Fleet, store: Store, rows: Rows):
    await fleet.join()
    await fleet.run("a")
    await fleet.lose()
    await fleet.join("i2")
    assert await fleet.recover() == 1
    (again,) = await fleet.claim()
    assert again.fence == 2
    before = await rows.history("a")
    for fence in (1, None, 3):
        with pytest.raises(StaleInstance):
            await ask(store, "a", fence)
        with pytest.raises(StaleInstance):
            await store.report(Status.SUCCEEDED, "a", fence=fence)
    assert await rows.history("a") == before
    assert (await store.report(Status.SUCCEEDED, "a", fence=2)).status is Status.SUCCEEDED


async def ask(store: Store, execution_id: str, fence: int | None):
    async with store.tx() as conn:
        return await asking.ask(
            conn, asked("q", execution_id), Wording(), actor=AGENT, new_id=store.new_id, fence=fence
        )
