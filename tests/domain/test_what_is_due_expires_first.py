"""A deadline that has passed is kept as passed before anything else is decided."""

from datetime import datetime, timedelta

import pytest

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.domain.cases import Answer, expire_due, settle
from controlplane.domain.events import SWEEPER
from controlplane.domain.executions import ExecutionStatus
from tests.factories import NOW, PERSON, approval, case

MOMENT = timedelta(microseconds=1)
RESUME = OnExpiry.RESUME


@pytest.mark.parametrize(
    ("expires_at", "due"),
    [(NOW + MOMENT, False), (NOW, True), (NOW - MOMENT, True)],
    ids=["just before", "exactly at", "just after"],
)
def test_an_approval_is_due_at_its_deadline(expires_at: datetime, due: bool):
    after = expire_due(case(approval("a", expires_at=expires_at)))
    assert (after.approval("apr_a").status is ApprovalStatus.EXPIRED) == due
    assert bool(after.facts) == due


def test_nothing_due_is_no_change():
    before = case(approval("a"), approval("b"))
    assert expire_due(before) is before


def test_an_answer_after_the_deadline_meets_what_stands():
    now = expire_due(case(approval("a", expires_at=NOW - MOMENT)))
    assert settle(now, "apr_a", Answer(status=ApprovalStatus.APPROVED, actor=PERSON)) == now
    assert now.execution.status is ExecutionStatus.CANCELLED


def test_the_earliest_deadline_comes_first():
    late = approval("a", expires_at=NOW - MOMENT, on_expiry=RESUME)
    early = approval("b", expires_at=NOW - 2 * MOMENT, on_expiry=RESUME)
    after = expire_due(case(late, early))
    assert [fact.approval_id for fact in after.facts if fact.settles] == ["apr_b", "apr_a"]
    assert after.execution.status is ExecutionStatus.RUNNING
    assert after.execution.status_reason == "approval_expired"


def test_the_first_that_cancels_withdraws_the_others_due_or_not():
    resumes = approval("a", expires_at=NOW - 3 * MOMENT, on_expiry=RESUME)
    cancels = approval("b", expires_at=NOW - 2 * MOMENT)
    also_due = approval("c", expires_at=NOW - MOMENT)
    after = expire_due(case(resumes, cancels, also_due, approval("d")))
    assert [a.status.value for a in after.approvals] == ["expired", "expired", "withdrawn", "withdrawn"]
    assert after.execution.status is ExecutionStatus.CANCELLED
    assert after.execution.status_reason == "approval_expired"


def test_the_system_expires_never_a_person():
    after = expire_due(case(approval("a", expires_at=NOW)))
    assert {fact.actor for fact in after.facts} == {SWEEPER}
    assert after.tellings == ("apr_a",)


def test_an_expiry_that_resumes_leaves_the_others_their_time():
    after = expire_due(case(approval("a", expires_at=NOW, on_expiry=RESUME), approval("b")))
    assert after.execution.status is ExecutionStatus.WAITING
    assert after.approval("apr_b").status is ApprovalStatus.PENDING
