"""What an instance that is gone held goes on elsewhere: at once, with its answer, or so that its end is seen."""

import pytest

from controlplane.domain.approvals import Approval, ApprovalStatus
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import asking
from controlplane.storage import dispatches
from controlplane.storage.approvals import Wording
from tests.factories import AGENT, asked
from tests.services.fleet import ACCEPTED, LOST, REFUSED, Fleet, ids
from tests.services.store import Rows, Store

Status = ExecutionStatus


async def ask(store: Store, execution_id: str = "a", fence: int | None = 1) -> Approval:
    async with store.tx() as conn:
        wanted = asked("q", execution_id)
        return await asking.ask(conn, wanted, Wording(), actor=AGENT, new_id=store.new_id, fence=fence)


async def test_a_running_run_is_dispatched_again_at_once(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a")
    await fleet.join("i2")
    assert await fleet.recover() == 0
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    assert (await store.run("a")).status is Status.QUEUED
    (sent,) = await fleet.claim()
    assert (sent.instance_id, sent.fence, sent.taken) == ("i2", 2, True)
    assert await fleet.recover() == 0


async def test_a_waiting_run_waits_on_and_is_dispatched_with_its_answer(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a")
    approval = await ask(store)
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    run = await store.run("a")
    assert (run.status, run.status_reason, run.instance_id) == (Status.WAITING, "waiting_for_node", None)
    await fleet.join("i2")
    assert (await store.run("a")).status_reason == "waiting_for_approval"
    assert await fleet.claim() == []
    await store.decide(approval.approval_id)
    assert store.changes.work
    (sent,) = await fleet.claim()
    assert (sent.instance_id, sent.fence) == ("i2", 2)
    found = await ask(store, fence=2)
    assert (found.approval_id, found.status) == (approval.approval_id, ApprovalStatus.APPROVED)


async def test_an_answer_that_comes_while_nobody_is_there_is_kept_for_the_next_instance(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a")
    approval = await ask(store)
    await fleet.lose("i1")
    await fleet.recover()
    await store.decide(approval.approval_id)
    run = await store.run("a")
    assert (run.status, run.status_reason) == (Status.RUNNING, "waiting_for_node")
    assert await fleet.claim() == []
    await fleet.join("i2")
    assert ids(await fleet.claim()) == ["a"]
    assert (await store.run("a")).status_reason == "approval_granted"


async def test_an_answer_that_came_before_the_loss_was_seen_is_not_lost(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a")
    approval = await ask(store)
    await store.decide(approval.approval_id)
    await fleet.lose("i1")
    await fleet.recover()
    await fleet.join("i2")
    assert ids(await fleet.claim()) == ["a"]


async def test_a_run_that_asks_to_be_started_while_it_waits_is(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a", resume_at_start=True)
    await ask(store)
    await fleet.lose("i1")
    await fleet.recover()
    await fleet.join("i2")
    (sent,) = await fleet.claim()
    assert (await store.run("a")).status is Status.WAITING
    assert (await ask(store, fence=sent.fence)).status is ApprovalStatus.PENDING


@pytest.mark.parametrize("status", [ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED])
async def test_an_end_while_the_agent_was_away_is_shown_to_its_code_once(
    fleet: Fleet, store: Store, status: ApprovalStatus
):
    await fleet.join("i1")
    await fleet.run("a")
    approval = await ask(store)
    await fleet.lose("i1")
    await fleet.recover()
    await store.decide(approval.approval_id, status)
    run = await store.run("a")
    assert (run.status, run.outcome_pending) == (Status.CANCELLED, True)
    await fleet.join("i2")
    (sent,) = await fleet.claim()
    assert await fleet.settle(sent, ACCEPTED)
    assert (await ask(store, fence=sent.fence)).status is status
    ended = await store.report(Status.SUCCEEDED, "a", fence=sent.fence, result=b'"cleaned"')
    assert (ended.status, ended.outcome_pending, ended.result) == (Status.CANCELLED, False, b'"cleaned"')
    await fleet.lose("i2")
    assert await fleet.recover() == 0
    assert await fleet.claim() == []


async def test_an_end_that_its_code_never_got_to_handle_is_shown_again(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a")
    approval = await ask(store)
    await store.decide(approval.approval_id, ApprovalStatus.REJECTED)
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    await fleet.join("i2")
    assert ids(await fleet.claim()) == ["a"]


async def test_a_run_that_dies_at_the_same_place_again_and_again_fails(fleet: Fleet, store: Store):
    await fleet.join("i0")
    await fleet.run("a")
    for number in range(1, 10):
        await fleet.lose(f"i{number - 1}")
        await fleet.recover()
        await fleet.join(f"i{number}")
        assert ids(await fleet.claim()) == ["a"], number
    await fleet.lose("i9")
    await fleet.recover()
    await fleet.join("i10")
    assert await fleet.claim() == []
    run = await store.run("a")
    assert (run.status, run.status_reason, run.fence) == (Status.FAILED, "too_many_restarts", 10)


async def test_a_step_is_progress_and_waiting_never_counts(fleet: Fleet, store: Store):
    await fleet.join("i0")
    await fleet.run("a")
    for number in range(1, 15):
        await store.step("s", b"1", "a", fence=number, occurrence=number)
        await fleet.lose(f"i{number - 1}")
        await fleet.recover()
        await fleet.join(f"i{number}")
        assert ids(await fleet.claim()) == ["a"], number


async def test_a_node_without_replay_is_left_alone(fleet: Fleet, store: Store):
    await fleet.join("i1", replay=False)
    await fleet.run("a")
    await fleet.run("b")
    approval = await ask(store, "b", None)
    await fleet.lose("i1")
    assert await fleet.recover() == 2
    await fleet.join("i2", replay=False)
    assert await fleet.claim() == []
    assert (await store.run("a")).status is Status.RUNNING
    await store.decide(approval.approval_id, ApprovalStatus.APPROVED)
    assert await fleet.claim() == []
    assert await fleet.recover() == 0


async def test_a_run_that_a_node_without_replay_never_got_is_given_to_its_next_instance(fleet: Fleet, store: Store):
    await fleet.join("i1", replay=False)
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    assert await fleet.settle(sent, REFUSED)
    await fleet.lose("i1")
    await fleet.recover()
    await fleet.join("i2", replay=False)
    assert ids(await fleet.claim()) == ["a"]


async def test_a_stopped_program_of_older_make_hands_its_waiting_run_back(fleet: Fleet, store: Store):
    await fleet.join("i1", replay=False)
    await fleet.run("a")
    approval = await ask(store, "a", None)
    run = await store.report(Status.CANCELLED, "a", shutdown=True, error="cancelled during graceful shutdown")
    assert (run.status, run.error, run.instance_id) == (Status.WAITING, None, None)
    assert (await store.look(approval.approval_id)).status is ApprovalStatus.PENDING
    await store.decide(approval.approval_id)
    assert (await store.run("a")).status is Status.RUNNING


async def test_a_stopped_programs_word_ends_a_run_that_waits_for_nothing(fleet: Fleet, store: Store):
    await fleet.join("i1", replay=False)
    await fleet.run("a")
    assert (await store.report(Status.CANCELLED, "a", shutdown=True)).status is Status.CANCELLED


async def test_what_is_handed_back_goes_on_elsewhere_and_only_its_holder_can(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.run("a")
    await fleet.run("b")
    await ask(store, "b")
    assert await fleet.hand_back("i2", {"a": 1, "b": 1}) == []
    assert await fleet.hand_back("i1", {"a": 2, "b": 1, "unknown": 1}) == ["b"]
    assert (await store.run("b")).instance_id is None
    assert await fleet.hand_back("i1", {"a": 1, "b": 1}) == ["a"]
    await fleet.join("i2")
    assert ids(await fleet.claim()) == ["a"]


async def test_a_run_over_its_limit_is_ended_and_its_instance_told(fleet: Fleet, store: Store, rows: Rows):
    await fleet.join("i1")
    await fleet.run("a", limit_seconds=60.0)
    assert await fleet.end_out_of_time() == 0
    await rows.sql.execute("UPDATE executions SET work_deadline = now(), running_since = now() - interval '60 s'")
    assert await fleet.end_out_of_time() == 1
    assert store.changes.ended == ["a"]
    run = await store.run("a")
    assert (run.status, run.status_reason) == (Status.TIMEOUT, "execution_timeout")
    (sent,) = await fleet.claim()
    assert (sent.kind, sent.reason, sent.base_url) == ("cancel", "execution_timeout", "http://127.0.0.1:9/i1")
    assert await fleet.settle(sent, ACCEPTED)
    assert await fleet.claim() == []


async def test_a_cancelled_run_is_told_to_a_draining_instance_too_and_to_nobody_who_is_gone(
    fleet: Fleet, store: Store, rows: Rows
):
    await fleet.join("i1")
    await fleet.run("a")
    await fleet.run("b")
    await rows.sql.execute("UPDATE instances SET status = 'draining'")
    await store.cancel("stop", "a")
    assert [(each.execution_id, each.kind) for each in await fleet.claim()] == [("a", "cancel")]
    await fleet.lose("i1")
    await fleet.join("i2")
    await store.cancel("stop", "b")
    assert await fleet.claim() == []
    assert await rows.value("SELECT due_at FROM dispatches WHERE execution_id = 'b'") is None


async def test_what_nobody_took_in_its_time_fails_though_no_instance_ever_came(fleet: Fleet, store: Store):
    await fleet.join("i1")
    await fleet.lose("i1")
    await fleet.queue("a", start_within=0.0)
    await fleet.queue("b")
    assert await fleet.give_up_unstarted() == 1
    run = await store.run("a")
    assert (run.status, run.status_reason, run.error) == (
        Status.FAILED,
        "agent_unreachable",
        "no instance of node-1 was there",
    )
    assert (await store.run("b")).status is Status.QUEUED


async def test_a_sign_of_one_who_counted_as_gone_keeps_the_run_in_the_queue(fleet: Fleet, store: Store):
    """Taken for gone before its first sign, it gives one, and then is gone indeed."""
    await fleet.join("i1")
    await fleet.run("a")
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    await store.step("s", b"1", "a", fence=1)
    run = await store.run("a")
    assert (run.status, run.instance_id) == (Status.RUNNING, None)
    await fleet.join("i2")
    (sent,) = await fleet.claim()
    assert (sent.instance_id, sent.fence) == ("i2", 2)


@pytest.mark.parametrize("written", [False, True])
async def test_a_run_on_its_way_to_a_node_without_replay_is_lost_with_no_instance(
    fleet: Fleet, store: Store, *, written: bool
):
    """What had not been written when its instance went is tried again; what had been, its agent may have."""
    await fleet.join("i1", replay=False)
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    if written:
        async with store.tx() as conn:
            assert await dispatches.mark_writing(conn, "a", sent.claim)
    assert await fleet.settle(sent, LOST if written else REFUSED)
    await fleet.join("i2", replay=False)
    await fleet.make_due()
    assert ids(await fleet.claim()) == ([] if written else ["a"])
    assert (await store.run("a")).status is Status.RUNNING


async def test_a_run_whose_sender_died_before_it_wrote_outlives_its_instance_too(
    fleet: Fleet, store: Store, rows: Rows
):
    await fleet.join("i1", replay=False)
    await fleet.queue("a")
    await fleet.claim()
    await fleet.lose("i1")
    await fleet.recover()
    await rows.sql.execute("UPDATE dispatches SET lease_until = now()")
    await fleet.join("i2", replay=False)
    assert [(each.instance_id, each.fence) for each in await fleet.claim()] == [("i2", 2)]


@pytest.mark.parametrize("settled", [False, True])
async def test_what_nobody_took_fails_in_its_time_though_an_instance_was_lost_on_the_way(
    fleet: Fleet, store: Store, *, settled: bool
):
    await fleet.join("i1")
    await fleet.queue("a")
    (sent,) = await fleet.claim()
    if settled:
        assert await fleet.settle(sent, REFUSED)
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    await fleet.rows.sql.execute("UPDATE dispatches SET start_by = now()")
    assert await fleet.give_up_unstarted() == 1
    run = await store.run("a")
    assert (run.status, run.status_reason) == (Status.FAILED, "agent_unreachable")


async def test_a_run_that_was_begun_waits_for_its_node_for_ever(fleet: Fleet, store: Store):
    """Counted as gone before the reply to its dispatch was settled, its instance asked all the same."""
    await fleet.join("i1")
    await fleet.queue("a")
    await fleet.claim()
    await fleet.lose("i1")
    assert await fleet.recover() == 1
    await ask(store)
    await fleet.rows.sql.execute("UPDATE dispatches SET start_by = now()")
    assert await fleet.give_up_unstarted() == 0
    assert (await store.run("a")).status is Status.WAITING
