"""Every state of an approval against every event: the listed move, or nothing changes at all."""

import itertools

import pytest

from controlplane.domain.approvals import (
    BEFORE_DEADLINE,
    FINAL_APPROVAL,
    TRANSITIONS,
    Approval,
    ApprovalStatus,
    Ending,
    OnExpiry,
    ending_of,
)
from controlplane.domain.cases import Answer, Case, cancel, open_approval, report, settle
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus
from tests.factories import AGENT, OPERATOR, PERSON, approval, case

# The answers that can come, with what was agreed for the deadline, and what the specification's table says of each:
# (approval, its others, execution with nothing else pending, execution with another pending, reason)
TABLE = {
    ("approved", "cancel"): ("approved", "pending", "running", "waiting", "approval_granted"),
    ("request_changes", "cancel"): ("request_changes", "pending", "running", "waiting", "approval_changes_requested"),
    ("rejected", "cancel"): ("rejected", "withdrawn", "cancelled", "cancelled", "approval_rejected"),
    ("expired", "cancel"): ("expired", "withdrawn", "cancelled", "cancelled", "approval_expired"),
    ("expired", "resume"): ("expired", "pending", "running", "waiting", "approval_expired"),
    ("withdrawn", "cancel"): ("withdrawn", "pending", "running", "waiting", "approval_withdrawn"),
}
ANSWERS = [ApprovalStatus(word) for word, _ in TABLE]


def answer(status: ApprovalStatus, feedback: str = "") -> Answer:
    return Answer(status=status, actor=PERSON, feedback=feedback)


def consistent(now: Case) -> bool:
    """What must hold of every case: the count is right, and waiting means that something is pending."""
    pending = len(now.pending())
    run = now.execution
    return (
        run.pending_approvals == pending
        and (run.status is ExecutionStatus.WAITING) == (pending > 0)
        and run.final == (run.ended_at is not None)
        and all(a.final == (a.decided_at is not None) == (a.new_status is not None) for a in now.approvals)
    )


@pytest.mark.parametrize(("word", "on_expiry"), TABLE)
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside another"])
def test_a_pending_approval_moves_as_listed(word: str, on_expiry: str, beside: bool):
    becomes, others, alone, accompanied, reason = TABLE[word, on_expiry]
    mine = approval("a", on_expiry=OnExpiry(on_expiry))
    before = case(mine, *([approval("b")] if beside else []))
    after = settle(before, mine.approval_id, answer(ApprovalStatus(word)))
    assert after.approval("apr_a").status == becomes
    assert after.execution.status == (accompanied if beside else alone)
    assert after.approval("apr_a").new_status == after.execution.status
    assert consistent(after)
    if beside:
        assert after.approval("apr_b").status == others
    waits = after.execution.status is ExecutionStatus.WAITING
    assert after.execution.status_reason == ("waiting_for_approval" if waits else reason)


@pytest.mark.parametrize(("stands", "comes"), list(itertools.product(sorted(FINAL_APPROVAL), ANSWERS)))
def test_a_final_approval_never_moves(stands: ApprovalStatus, comes: ApprovalStatus):
    before = case(approval("a", status=stands), approval("b"))
    assert settle(before, "apr_a", answer(comes)) == before


def test_the_table_has_a_row_for_each_ending_and_no_more():
    assert set(TRANSITIONS) == set(Ending)
    assert {ending_of(ApprovalStatus(word), OnExpiry(on_expiry)) for word, on_expiry in TABLE} == set(Ending)
    assert {transition.to for transition in TRANSITIONS.values()} == FINAL_APPROVAL
    assert {"approved", "rejected", "request_changes"} == BEFORE_DEADLINE


@pytest.mark.parametrize("status", sorted(FINAL_EXECUTION))
def test_an_agents_end_withdraws_what_is_pending_and_tells_nobody(status: ExecutionStatus):
    after = report(case(approval("a"), approval("b")), status, AGENT)
    assert after.execution.status is status
    assert after.execution.status_reason == "execution_finished"
    assert {a.status for a in after.approvals} == {ApprovalStatus.WITHDRAWN}
    assert after.tellings == ()
    assert consistent(after)


@pytest.mark.parametrize("status", sorted(set(ExecutionStatus) - FINAL_EXECUTION))
@pytest.mark.parametrize("approvals", [(), (approval("a"),)], ids=["running", "waiting"])
def test_a_report_that_is_no_end_changes_nothing(status: ExecutionStatus, approvals: tuple[Approval, ...]):
    before = case(*approvals)
    assert report(before, status, AGENT) == before


@pytest.mark.parametrize(("stands", "comes"), list(itertools.product(sorted(FINAL_EXECUTION), repeat=2)))
def test_a_final_execution_never_moves(stands: ExecutionStatus, comes: ExecutionStatus):
    over = case(approval("a", status=ApprovalStatus.REJECTED), status=stands)
    assert report(over, comes, AGENT) == over
    assert cancel(over, "why", OPERATOR) == over


def test_cancelling_withdraws_what_is_pending_and_tells_it():
    after = cancel(case(approval("a"), approval("b")), "no longer needed", OPERATOR)
    assert after.execution.status is ExecutionStatus.CANCELLED
    assert after.execution.status_reason == "no longer needed"
    assert set(after.tellings) == {"apr_a", "apr_b"}
    assert {a.status for a in after.approvals} == {ApprovalStatus.WITHDRAWN}
    assert consistent(after)


@pytest.mark.parametrize("approvals", [(), (approval("a"),)], ids=["running", "waiting"])
def test_asking_makes_the_execution_wait(approvals: tuple[Approval, ...]):
    after = open_approval(case(*approvals), approval("new"), AGENT)
    assert after.execution.status is ExecutionStatus.WAITING
    assert after.execution.status_reason == "waiting_for_approval"
    assert consistent(after)


def test_a_rejection_tells_every_approval_that_it_ended():
    after = settle(case(approval("a"), approval("b"), approval("c")), "apr_b", answer(ApprovalStatus.REJECTED))
    assert set(after.tellings) == {"apr_a", "apr_b", "apr_c"}
    assert {a.new_status for a in after.approvals} == {ExecutionStatus.CANCELLED}


@pytest.mark.parametrize("status", ANSWERS)
def test_each_end_is_one_settling_fact_by_whoever_made_it(status: ApprovalStatus):
    after = settle(case(approval("a"), approval("b")), "apr_a", answer(status))
    ended = [a.approval_id for a in after.approvals if a.final]
    assert sorted(fact.approval_id or "" for fact in after.facts if fact.settles) == ended
    assert {fact.actor for fact in after.facts} == {PERSON}


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (ApprovalStatus.APPROVED, "approval_granted"),
        (ApprovalStatus.REQUEST_CHANGES, "approval_changes_requested: shorter, please"),
        (ApprovalStatus.REJECTED, "approval_rejected: shorter, please"),
    ],
)
def test_feedback_stands_in_the_reason_where_it_explains(status: ApprovalStatus, reason: str):
    after = settle(case(approval("a")), "apr_a", answer(status, "shorter, please"))
    assert after.execution.status_reason == reason
    assert after.approval("apr_a").feedback == "shorter, please"


def test_long_feedback_is_kept_whole_and_stands_short_in_the_reason():
    after = settle(case(approval("a")), "apr_a", answer(ApprovalStatus.REJECTED, "x" * 20_000))
    assert after.approval("apr_a").feedback == "x" * 20_000
    assert len(after.execution.status_reason or "") == len("approval_rejected: ") + 500
