"""What an ask finds or opens, row by row: nothing is asked twice, and no answer covers what nobody saw."""

from typing import Any

import pytest

from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.asking import Asked, Found, Opening, opened, resolve
from controlplane.domain.cases import Case
from controlplane.domain.errors import ApprovalRequestConflict, HoldshortError, InvalidState, RoundNotOpen
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus
from tests.factories import AGENT, CALLBACK, DIGEST, HOUR, NOW, OTHER_DIGEST, approval, asked, case

PENDING = ApprovalStatus.PENDING
APPROVED = ApprovalStatus.APPROVED
REJECTED = ApprovalStatus.REJECTED
CHANGES = ApprovalStatus.REQUEST_CHANGES
EXPIRED = ApprovalStatus.EXPIRED
WITHDRAWN = ApprovalStatus.WITHDRAWN
RESUME = OnExpiry.RESUME
CANCELLED = ExecutionStatus.CANCELLED
RUNNING = ExecutionStatus.RUNNING

# How the newest round stands: (its status, on_expiry, the execution's status where it is not what follows from it)
STANDS = {
    "pending": (PENDING, OnExpiry.CANCEL, None),
    "approved": (APPROVED, OnExpiry.CANCEL, None),
    "rejected": (REJECTED, OnExpiry.CANCEL, CANCELLED),
    "expired (cancel)": (EXPIRED, OnExpiry.CANCEL, CANCELLED),
    "request_changes": (CHANGES, OnExpiry.CANCEL, None),
    "expired (resume)": (EXPIRED, RESUME, None),
    "withdrawn": (WITHDRAWN, OnExpiry.CANCEL, None),
}
STAY = ["pending", "approved", "rejected", "expired (cancel)"]
REOPEN = ["request_changes", "expired (resume)", "withdrawn"]
BIND = ["pending", "approved", "rejected"]


def standing(name: str, **changes: Any) -> Case:
    """A case whose newest and only round stands as named, asked for `DIGEST`."""
    status, on_expiry, run = STANDS[name]
    return case(approval("a", status=status, on_expiry=on_expiry, payload_digest=DIGEST), status=run, **changes)


def again(now: Case, **changes: Any) -> Asked:
    """The same ask once more, as a repeated run sends it."""
    first = now.approvals[0]
    return asked(**({"payload_digest": first.payload_digest, "on_expiry": first.on_expiry} | changes))


def outcome(now: Case, wanted: Asked, *, told: bool = True) -> Approval | int | type[HoldshortError]:
    """The approval that is found, the round that may be opened, or the kind of refusal."""
    try:
        result = resolve(now, wanted, told=told)
    except HoldshortError as refusal:
        return type(refusal)
    return result.round if isinstance(result, Opening) else result.approval


def test_the_first_ask_opens_round_one():
    assert outcome(case(), asked()) == 1
    assert outcome(case(), asked(round=1)) == 1
    assert outcome(case(), asked(round=2)) is RoundNotOpen
    assert outcome(case(approval("other")), asked()) == 1


@pytest.mark.parametrize("name", STAY)
@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("round_", [None, 1])
def test_what_ended_for_good_or_still_waits_is_found(name: str, told: bool, round_: int | None):
    now = standing(name)
    assert outcome(now, again(now, round=round_), told=told) == now.approvals[0]


@pytest.mark.parametrize("name", REOPEN)
def test_without_a_round_a_new_one_opens_once_the_end_is_known(name: str):
    now = standing(name)
    assert outcome(now, again(now), told=True) == 2
    assert outcome(now, again(now), told=False) == now.approvals[0]


@pytest.mark.parametrize("name", REOPEN)
def test_an_end_that_was_not_told_is_told_whatever_is_asked_now(name: str):
    now = standing(name)
    assert outcome(now, again(now, payload_digest=OTHER_DIGEST), told=False) == now.approvals[0]
    assert outcome(now, again(now, payload_digest=OTHER_DIGEST), told=True) == 2


@pytest.mark.parametrize("name", STANDS)
@pytest.mark.parametrize("told", [True, False])
def test_a_named_round_never_depends_on_what_was_told(name: str, told: bool):
    now = standing(name)
    assert outcome(now, again(now, round=1), told=told) == now.approvals[0]
    assert outcome(now, again(now, round=2), told=told) == (2 if name in REOPEN else RoundNotOpen)
    assert outcome(now, again(now, round=3), told=told) is RoundNotOpen


@pytest.mark.parametrize("name", STANDS)
@pytest.mark.parametrize("changed", [{"payload_digest": OTHER_DIGEST}, {"payload_digest": None}, {"on_expiry": None}])
def test_a_named_round_answers_only_for_the_same_action(name: str, changed: dict[str, Any]):
    now = standing(name)
    if "on_expiry" in changed:
        changed = {"on_expiry": next(o for o in OnExpiry if o is not now.approvals[0].on_expiry)}
    assert outcome(now, again(now, round=1, **changed)) is ApprovalRequestConflict


@pytest.mark.parametrize("name", STAY)
def test_an_answer_never_covers_another_action(name: str):
    now = standing(name)
    found = outcome(now, again(now, payload_digest=OTHER_DIGEST))
    assert found == (ApprovalRequestConflict if name in BIND else now.approvals[0])


def test_a_conflict_says_what_stands():
    now = standing("approved")
    with pytest.raises(ApprovalRequestConflict) as refused:
        resolve(now, again(now, payload_digest=OTHER_DIGEST), told=True)
    assert refused.value.extra == {"approval_id": "apr_a", "round": 1, "payload_digest": DIGEST, "on_expiry": "cancel"}


@pytest.mark.parametrize("name", [name for name in STANDS if name != "pending"])
@pytest.mark.parametrize("over", sorted(FINAL_EXECUTION))
def test_a_final_execution_finds_what_stands_and_opens_nothing(name: str, over: ExecutionStatus):
    status, on_expiry, _ = STANDS[name]
    now = case(approval("a", status=status, on_expiry=on_expiry), status=over)
    assert outcome(now, again(now)) == now.approvals[0]
    assert outcome(now, again(now, round=1)) == now.approvals[0]
    assert outcome(now, again(now, round=2)) is (InvalidState if name in REOPEN else RoundNotOpen)


@pytest.mark.parametrize("over", [*sorted(FINAL_EXECUTION), ExecutionStatus.QUEUED])
def test_nothing_new_is_asked_of_an_execution_that_does_not_run(over: ExecutionStatus):
    with pytest.raises(InvalidState) as refused:
        resolve(case(status=over, status_reason="why"), asked(), told=True)
    assert refused.value.extra == {"execution_status": over, "status_reason": "why"}


@pytest.mark.parametrize(("name", "told_again"), [(name, name != "pending") for name in STAY])
def test_an_end_is_told_again_where_a_callback_came(name: str, told_again: bool):
    now = standing(name)
    found = resolve(now, again(now, callback_url=CALLBACK), told=True)
    assert isinstance(found, Found)
    assert found.tell == told_again
    silent = resolve(now, again(now), told=True)
    assert isinstance(silent, Found)
    assert not silent.tell


def test_an_earlier_round_is_found_as_it_stands():
    first = approval("a", approval_id="apr_1", status=CHANGES)
    second = approval("a", approval_id="apr_2", round=2)
    now = case(first, second)
    assert outcome(now, asked(round=1)) == first
    assert outcome(now, asked(round=2)) == second
    assert outcome(now, asked()) == second
    assert outcome(now, asked(round=3)) is RoundNotOpen


def test_an_opened_round_counts_its_time_from_the_cases_moment():
    after = opened(case(), asked(decided_by="desk", on_expiry=RESUME), Opening(1), "apr_new", AGENT)
    new = after.approval("apr_new")
    assert (new.requested_at, new.expires_at) == (NOW, NOW + HOUR)
    assert (new.status, new.round, new.decided_by, new.on_expiry) == (PENDING, 1, "desk", RESUME)
    assert [fact.type for fact in after.facts] == ["approval.requested", "execution.waiting"]
