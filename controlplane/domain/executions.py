"""Executions: one run of an agent's function, which states it can be in, who runs it, and for how long it worked."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from controlplane.domain.errors import StaleInstance

WAITING_FOR_APPROVAL = "waiting_for_approval"
WAITING_FOR_NODE = "waiting_for_node"
EXECUTION_FINISHED = "execution_finished"
EXECUTION_TIMEOUT = "execution_timeout"
CANCELLED_BY_OPERATOR = "cancelled_by_operator"
DISPATCH_FAILED = "dispatch_failed"
INSTANCE_GONE = "instance_gone"
HANDED_BACK = "handed_back"
TOO_MANY_RESTARTS = "too_many_restarts"
STALLS_LIMIT = 10


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
    What a program started itself is not `dispatched`, and the fields about dispatching stay at their defaults:
    `fence` numbers the dispatches, `instance_id` is whoever holds the present one (None: nobody), `replay` and
    `fenced` say what that instance understands, `proven` that it gave a sign under this fence, and `stalls` counts
    dispatches since the run last got further. `outcome_pending`: ended by a person or a deadline, and its code has
    not seen it yet. `worked_seconds` is what it worked before `running_since`, of `limit_seconds` at most.
    """

    execution_id: str
    node_id: str
    status: ExecutionStatus
    status_reason: str | None
    pending_approvals: int
    created_at: datetime
    ended_at: datetime | None = None
    dispatched: bool = False
    fence: int = 0
    instance_id: str | None = None
    replay: bool = False
    fenced: bool = False
    proven: bool = False
    stalls: int = 0
    resume_at_start: bool = False
    outcome_pending: bool = False
    limit_seconds: float | None = None
    worked_seconds: float = 0.0
    running_since: datetime | None = None
    started_by: str | None = None

    @property
    def final(self) -> bool:
        """True when the execution is over."""
        return self.status in FINAL_EXECUTION

    @property
    def may_ask(self) -> bool:
        """True when something new can be asked: it is alive, and was given to an agent (or started by one)."""
        return self.status in MAY_ASK or (self.status is ExecutionStatus.QUEUED and self.fence > 0)

    @property
    def code_goes_on(self) -> bool:
        """True when its code may still be at work: it is in hand, or ended by an answer and not by its own report.

        Who started a run on their own reports its end too, so until then their code may clean up after a rejection.
        """
        if self.may_ask or self.outcome_pending:
            return True
        return self.status is ExecutionStatus.CANCELLED and not self.dispatched

    @property
    def wants_an_agent(self) -> bool:
        """True when an agent has something to do in it, now or once its approval is final."""
        return self.dispatched and (not self.final or self.outcome_pending)

    @property
    def time_left(self) -> float | None:
        """Seconds of its limit that it has not worked yet, when a stretch of work begins; None without a limit."""
        return None if self.limit_seconds is None else max(0.0, self.limit_seconds - self.worked_seconds)

    @property
    def work_deadline(self) -> datetime | None:
        """When its limit of running time passes, if it runs on from here; None while nothing is counted."""
        if self.running_since is None or self.time_left is None:
            return None
        return self.running_since + timedelta(seconds=self.time_left)


def check_named_fence(execution: Execution, fence: int | None) -> None:
    """As `check_fence`, where a caller need not be an instance: who names no fence is let through."""
    if fence is not None:
        check_fence(execution, fence)


def check_fence(execution: Execution, fence: int | None) -> None:
    """Refuse what an instance says of a run that another dispatch took over; where the rule comes from: peer-wire.

    Args:
        execution: as it stands, locked.
        fence: as the caller sent it; None from callers that know of none.

    Raises:
        StaleInstance: the run was dispatched again since, or its instance knows fences and this caller sent none.
    """
    if fence is None:
        if execution.fenced:
            raise StaleInstance(
                "This run is held under a fence; send X-Holdshort-Fence as it came with the dispatch.",
                fence=execution.fence,
            )
        return
    if fence != execution.fence:
        raise StaleInstance(fence=execution.fence)
