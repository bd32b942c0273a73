"""Approvals: one question to a person, and the one table of what each answer does to it and to its execution."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from controlplane.domain.executions import ExecutionStatus

MIN_EXPIRY = timedelta(seconds=1)
MAX_EXPIRY_HOURS = 8760


class ApprovalStatus(StrEnum):
    """The states of an approval; all but `pending` are final and never change."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    REQUEST_CHANGES = "request_changes"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


FINAL_APPROVAL = frozenset(ApprovalStatus) - {ApprovalStatus.PENDING}
BEFORE_DEADLINE = frozenset({ApprovalStatus.APPROVED, ApprovalStatus.REJECTED, ApprovalStatus.REQUEST_CHANGES})


class OnExpiry(StrEnum):
    """What the deadline does to the execution: end it, or let it go on with the answer `expired`."""

    CANCEL = "cancel"
    RESUME = "resume"


class Approval(Struct, frozen=True, kw_only=True):
    """What the rules need to know of one approval; title, description and payload stay in storage.

    `form` is what values an approval takes, as JSON bytes, None when it takes none. `response` is the sender's own
    JSON as bytes, None when there was none. `read_at` is when its agent read the final status; `new_status` is the
    execution's at the decision.
    """

    approval_id: str
    execution_id: str
    node_id: str
    approval_request_id: str
    round: int
    status: ApprovalStatus
    on_expiry: OnExpiry
    requested_at: datetime
    expires_at: datetime
    approval_request_url: str | None = None
    payload_digest: str | None = None
    decided_by: str | None = None
    form: bytes | None = None
    callback_url: str | None = None
    callback_secret: str | None = None
    decided_at: datetime | None = None
    feedback: str | None = None
    response: bytes | None = None
    read_at: datetime | None = None
    new_status: ExecutionStatus | None = None

    @property
    def final(self) -> bool:
        """True when the approval has its answer."""
        return self.status in FINAL_APPROVAL

    @property
    def reopens(self) -> bool:
        """True when a further round may follow: changes were asked for, or it ended without ending its execution."""
        if self.status is ApprovalStatus.EXPIRED:
            return self.on_expiry is OnExpiry.RESUME
        return self.status in {ApprovalStatus.REQUEST_CHANGES, ApprovalStatus.WITHDRAWN}


class Effect(StrEnum):
    """What an approval's end does to its execution and to the approvals beside it."""

    RESUME = "resume"  # running again when nothing else is pending
    CANCEL = "cancel"  # over, and the other pending approvals are withdrawn


class Transition(Struct, frozen=True):
    """One row of the table: what ends an approval, what it becomes, what follows and the reason that is kept."""

    to: ApprovalStatus
    effect: Effect
    reason: str
    with_feedback: bool = False


class Ending(StrEnum):
    """The events that end a pending approval while its execution is alive."""

    APPROVED = "approved"
    REQUEST_CHANGES = "request_changes"
    REJECTED = "rejected"
    EXPIRED_CANCEL = "expired_cancel"
    EXPIRED_RESUME = "expired_resume"
    WITHDRAWN = "withdrawn"


TRANSITIONS: dict[Ending, Transition] = {
    Ending.APPROVED: Transition(ApprovalStatus.APPROVED, Effect.RESUME, "approval_granted"),
    Ending.REQUEST_CHANGES: Transition(
        ApprovalStatus.REQUEST_CHANGES, Effect.RESUME, "approval_changes_requested", with_feedback=True
    ),
    Ending.REJECTED: Transition(ApprovalStatus.REJECTED, Effect.CANCEL, "approval_rejected", with_feedback=True),
    Ending.EXPIRED_CANCEL: Transition(ApprovalStatus.EXPIRED, Effect.CANCEL, "approval_expired"),
    Ending.EXPIRED_RESUME: Transition(ApprovalStatus.EXPIRED, Effect.RESUME, "approval_expired"),
    Ending.WITHDRAWN: Transition(ApprovalStatus.WITHDRAWN, Effect.RESUME, "approval_withdrawn"),
}

EFFECT_STATUS: dict[Effect, ExecutionStatus] = {
    Effect.RESUME: ExecutionStatus.RUNNING,
    Effect.CANCEL: ExecutionStatus.CANCELLED,
}


def ending_of(status: ApprovalStatus, on_expiry: OnExpiry) -> Ending:
    """The row of the table for an answer; an expiry's row depends on what was agreed when it was asked."""
    if status is ApprovalStatus.EXPIRED:
        return Ending.EXPIRED_RESUME if on_expiry is OnExpiry.RESUME else Ending.EXPIRED_CANCEL
    return Ending(status.value)
