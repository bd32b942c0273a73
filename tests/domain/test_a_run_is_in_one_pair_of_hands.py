"""A run has one holder at a time, and passes on in the one way that each kind of loss asks for."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from controlplane.domain import cases, runs
from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer, Case
from controlplane.domain.dispatching import Order
from controlplane.domain.errors import StaleInstance
from controlplane.domain.executions import STALLS_LIMIT, ExecutionStatus, check_fence, check_named_fence
from tests.factories import AGENT, NOW, OPERATOR, PERSON, approval, case, held, instance, of

Status = ExecutionStatus


def facts(after: Case) -> list[str]:
    return [fact.type for fact in after.facts]


def test_a_dispatch_raises_the_fence_and_runs_what_was_queued():
    run = runs.dispatch(of(Status.QUEUED), instance()).execution
    assert (run.status, run.fence, run.instance_id, run.replay, run.fenced) == (Status.RUNNING, 1, "i1", True, True)
    assert (run.running_since, run.proven, run.stalls) == (NOW, False, 1)


@pytest.mark.parametrize("status", [Status.WAITING, Status.CANCELLED])
def test_a_dispatch_leaves_a_waiting_run_waiting_and_an_ended_one_ended(status: Status):
    before = of(status, *([approval()] if status is Status.WAITING else []), fence=3, replay=True)
    run = runs.dispatch(before, instance("i2")).execution
    assert (run.status, run.fence, run.instance_id, run.running_since) == (status, 4, "i2", None)


def test_ten_dispatches_without_progress_are_enough():
    tired = of(Status.QUEUED, fence=10, stalls=STALLS_LIMIT, replay=True)
    after = runs.dispatch(tired, instance())
    assert (after.execution.status, after.execution.status_reason) == (Status.FAILED, "too_many_restarts")
    assert after.order is Order.NOTHING
    unseen = of(Status.CANCELLED, fence=10, stalls=STALLS_LIMIT, replay=True, outcome_pending=True)
    end = runs.dispatch(unseen, instance()).execution
    assert (end.status, end.outcome_pending) == (Status.CANCELLED, False)


def test_what_gets_a_run_further_counts_its_dispatches_anew():
    opened = cases.open_approval(held(Status.RUNNING, stalls=7), approval(), AGENT)
    assert opened.execution.stalls == 0
    waiting = held(Status.WAITING, approval(), stalls=7)
    answered = cases.settle(waiting, "apr_a", Answer(status=ApprovalStatus.APPROVED, actor=PERSON))
    assert answered.execution.stalls == 0


def test_a_running_run_of_the_gone_is_queued_at_once():
    after = runs.release(held(Status.RUNNING), "instance_gone")
    run = after.execution
    assert (run.status, run.status_reason, run.instance_id, after.order) == (
        Status.QUEUED,
        "instance_gone",
        None,
        Order.RUN,
    )
    assert facts(after) == ["execution.released", "execution.queued"]


def test_a_waiting_run_of_the_gone_rests_until_it_has_an_answer():
    resting = runs.release(held(Status.WAITING, approval()), "instance_gone")
    assert (resting.execution.status, resting.execution.instance_id) == (Status.WAITING, None)
    assert resting.order is Order.NOTHING
    answered = cases.settle(resting, "apr_a", Answer(status=ApprovalStatus.APPROVED, actor=PERSON))
    assert (answered.execution.status, answered.order) == (Status.RUNNING, Order.RUN)
    assert answered.execution.running_since is None  # nobody works on it yet


def test_a_reasoner_may_ask_to_be_started_while_its_run_waits():
    after = runs.release(held(Status.WAITING, approval(), resume_at_start=True), "instance_gone")
    assert (after.execution.status, after.order) == (Status.WAITING, Order.RUN)


@pytest.mark.parametrize("status", [ApprovalStatus.REJECTED, ApprovalStatus.EXPIRED])
@pytest.mark.parametrize("away", [False, True])
def test_an_end_by_a_person_or_a_deadline_is_shown_to_the_code_once(status: ApprovalStatus, away: bool):
    waiting = held(Status.WAITING, approval())
    waiting = runs.release(waiting, "instance_gone") if away else waiting
    ended = cases.settle(waiting, "apr_a", Answer(status=status, actor=PERSON))
    assert (ended.execution.status, ended.execution.outcome_pending) == (Status.CANCELLED, True)
    assert (ended.order is Order.RUN) is away
    released = ended if away else runs.release(ended, "instance_gone")
    assert released.order is Order.RUN
    seen = cases.report(runs.dispatch(released, instance("i2")), Status.SUCCEEDED, AGENT)
    assert (seen.execution.status, seen.execution.outcome_pending, seen.order) == (
        Status.CANCELLED,
        False,
        Order.NOTHING,
    )
    assert runs.release(seen, "instance_gone") == seen


@pytest.mark.parametrize("status", [Status.RUNNING, Status.WAITING])
def test_a_node_without_replay_keeps_its_run_and_nobody_repeats_it(status: Status):
    before = held(status, *([approval()] if status is Status.WAITING else []), replay=False, fenced=False)
    after = runs.release(before, "instance_gone")
    assert (after.execution.status, after.execution.instance_id, after.order) == (status, None, None)
    if status is Status.WAITING:
        answered = cases.settle(after, "apr_a", Answer(status=ApprovalStatus.REJECTED, actor=PERSON))
        assert (answered.execution.outcome_pending, answered.order) == (False, None)


@pytest.mark.parametrize("replay", [False, True])
def test_a_queued_run_of_the_gone_stays_in_the_queue(replay: bool):
    after = runs.release(held(Status.QUEUED, replay=replay), "instance_gone")
    assert (after.execution.status, after.execution.instance_id, after.order) == (Status.QUEUED, None, Order.RUN)


def test_an_operators_cancel_reaches_the_holder_and_nobody_else():
    assert cases.cancel(held(Status.RUNNING), "stop", OPERATOR).order is Order.CANCEL
    assert cases.cancel(of(Status.QUEUED), "stop", OPERATOR).order is Order.NOTHING
    assert cases.cancel(case(), "stop", OPERATOR).order is None
    ended = cases.cancel(held(Status.WAITING, approval()), "stop", OPERATOR)
    assert (ended.execution.outcome_pending, ended.order) == (False, Order.CANCEL)


def test_a_try_that_came_to_nothing_is_queued_again_unless_the_run_gave_a_sign():
    tried = runs.dispatch(of(Status.QUEUED), instance())
    assert runs.is_open(tried.execution, 1)
    back = runs.undispatch(tried).execution
    assert (back.status, back.status_reason, back.stalls) == (Status.QUEUED, "dispatch_failed", 0)
    proven = runs.prove(tried)
    assert not runs.is_open(proven.execution, 1)
    assert not runs.is_open(tried.execution, 2)


def test_a_waiting_run_whose_try_came_to_nothing_works_for_nobody_once_it_is_answered():
    resting = of(Status.WAITING, approval(), fence=3, replay=True, resume_at_start=True, limit_seconds=60.0)
    back = runs.undispatch(runs.dispatch(resting, instance("i2")))
    assert (back.execution.status, back.execution.instance_id) == (Status.WAITING, None)
    answered = cases.settle(back, "apr_a", Answer(status=ApprovalStatus.APPROVED, actor=PERSON))
    assert (answered.execution.work_deadline, answered.order) == (None, Order.RUN)


def test_a_sign_under_the_present_fence_proves_that_a_queued_run_runs():
    queued = runs.undispatch(runs.dispatch(of(Status.QUEUED), instance()))
    after = runs.prove(queued)
    assert (after.execution.status, after.execution.instance_id, after.order) == (Status.RUNNING, "i1", Order.NOTHING)
    assert runs.prove(of(Status.QUEUED)) == of(Status.QUEUED)


@pytest.mark.parametrize("proven", [True, False])
def test_a_sign_of_one_who_counts_as_gone_takes_nothing_out_of_the_queue(*, proven: bool):
    released = runs.release(held(Status.RUNNING, proven=proven), "instance_gone")
    after = runs.prove(released)
    assert (released.order, after.order) == (Order.RUN, Order.RUN)
    run = after.execution
    assert (run.status, run.proven, run.instance_id, run.running_since) == (Status.RUNNING, True, None, None)


@pytest.mark.parametrize("fence", [0, 2, 4, None])
def test_another_fence_is_refused(fence: int | None):
    with pytest.raises(StaleInstance):
        check_fence(held(Status.RUNNING).execution, fence)


def test_the_present_fence_is_taken_and_unknowing_callers_where_nobody_knows_of_fences():
    check_fence(held(Status.RUNNING).execution, 3)
    check_fence(held(Status.RUNNING, fenced=False).execution, None)
    check_fence(case().execution, None)
    check_named_fence(held(Status.RUNNING).execution, None)


def test_waiting_does_not_count_against_the_limit():
    later = timedelta(seconds=30)
    run = runs.dispatch(of(Status.QUEUED, limit_seconds=60.0), instance())
    assert run.execution.work_deadline == NOW + timedelta(seconds=60)
    asked = cases.open_approval(replace(run, at=NOW + later), approval(), AGENT)
    assert (asked.execution.worked_seconds, asked.execution.work_deadline) == (30.0, None)
    answered = cases.settle(
        replace(asked, at=NOW + timedelta(days=2)), "apr_a", Answer(status=ApprovalStatus.APPROVED, actor=PERSON)
    )
    assert answered.execution.work_deadline == NOW + timedelta(days=2) + later


def test_work_that_died_with_its_process_does_not_count_against_the_limit():
    run = runs.dispatch(of(Status.QUEUED, limit_seconds=60.0), instance())
    lost = runs.release(replace(run, at=NOW + timedelta(seconds=50)), "instance_gone")
    assert (lost.execution.worked_seconds, lost.execution.running_since) == (0.0, None)


def test_a_run_over_its_limit_ends_and_its_holder_is_told():
    run = runs.dispatch(of(Status.QUEUED, limit_seconds=60.0), instance())
    assert runs.run_out_of_time(replace(run, at=NOW + timedelta(seconds=59))).execution.status is Status.RUNNING
    after = runs.run_out_of_time(replace(run, at=NOW + timedelta(seconds=60)))
    assert (after.execution.status, after.execution.status_reason) == (Status.TIMEOUT, "execution_timeout")
    assert (after.order, after.execution.work_deadline) == (Order.CANCEL, None)
