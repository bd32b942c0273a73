"""Executions: one run of an agent's function, and which states it can be in."""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

WAITING_FOR_APPROVAL = "waiting_for_approval"
EXECUTION_FINISHED = "execution_finished"
CANCELLED_BY_OPERATOR = "cancelled_by_operator"


class ExecutionStatus(StrEnum):
    """The states of an execution; the last four are final and never change."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"


FINAL_EXECUTION = frozenset(
    {ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED, ExecutionStatus.CANCELLED, ExecutionStatus.TIMEOUT}
)
MAY_ASK = frozenset({ExecutionStatus.RUNNING, ExecutionStatus.WAITING})


class Execution(Struct, frozen=True, kw_only=True):
    """What the rules need to know of one execution; its input and result stay in storage.

    `pending_approvals` counts its approvals that are pending: above zero exactly while it is `waiting`.
    """

    execution_id: str
    node_id: str
    status: ExecutionStatus
    status_reason: str | None
    pending_approvals: int
    created_at: datetime
    ended_at: datetime | None = None

    @property
    def final(self) -> bool:
        """True when the execution is over."""
        return self.status in FINAL_EXECUTION
