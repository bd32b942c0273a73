"""What the control plane says, as structs; members that are added later are ignored."""

from datetime import datetime
from typing import Any, Literal, NoReturn

from msgspec import Struct
from msgspec.structs import force_setattr

Decision = Literal["approved", "rejected", "request_changes", "expired", "withdrawn"]
OnExpiry = Literal["cancel", "resume"]
FINAL_EXECUTION = frozenset({"succeeded", "failed", "cancelled", "timeout"})
FINAL_APPROVAL = frozenset({"approved", "rejected", "request_changes", "expired", "withdrawn"})


class Form(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person fills in while deciding.

    Args:
        kind: text, yes_no, multiple_choice or form.
        options: of multiple_choice, 1-20 distinct texts of 1-200 characters.
        yes_label: of yes_no.
        no_label: of yes_no.
        schema: of form, the JSON Schema of an object.
        editable: True where the payload is what is filled in already, and may be changed.
    """

    kind: str
    options: list[str] | None = None
    yes_label: str | None = None
    no_label: str | None = None
    schema: dict[str, Any] | None = None
    editable: bool = False


class ApprovalResult(Struct, frozen=True, kw_only=True):
    """What a person, or the deadline, said.

    `decision` is approved, rejected, request_changes, expired or withdrawn; `feedback` the comment ("" when there
    was none); `data` exactly what the sender put into its `response`, None when there was none; `round` the
    how-many-eth ask under `approval_request_id`. It has no truth value: ask `.approved`.

    Where it was asked with a form: `values` is what was filled in, and None unless it was approved; `original` the
    payload as it was asked about, where it was editable.
    """

    decision: Decision
    feedback: str
    execution_id: str
    approval_request_id: str
    approval_id: str
    round: int
    data: Any = None
    values: Any = None
    original: Any = None

    def __post_init__(self) -> None:
        filled = self.data if self.approved and isinstance(self.data, dict) and "values" in self.data else {}
        for name in ("values", "original"):
            if not filled or getattr(self, name) is None:
                force_setattr(self, name, filled.get(name))

    @property
    def approved(self) -> bool:
        """True only for approved."""
        return self.decision == "approved"

    @property
    def rejected(self) -> bool:
        """True when a person said no; the execution is cancelled, and the code may clean up."""
        return self.decision == "rejected"

    @property
    def changes_requested(self) -> bool:
        """True when changes are wanted; `feedback` says which, and asking again opens the next round."""
        return self.decision == "request_changes"

    @property
    def expired(self) -> bool:
        """True when the deadline passed unanswered; that is nobody's no, and never a yes."""
        return self.decision == "expired"

    @property
    def withdrawn(self) -> bool:
        """True when the question was taken back before anybody answered."""
        return self.decision == "withdrawn"

    def __bool__(self) -> NoReturn:
        """Refuse: `if result:` would run the action after a rejection too."""
        raise TypeError("an ApprovalResult has no truth value; ask result.approved")


class Answer(Struct, frozen=True):
    """The answer inside an approval's status: decision, comment and the sender's own data."""

    decision: str
    feedback: str = ""
    data: Any = None


class ApprovalStatus(Struct, frozen=True, kw_only=True):
    """An approval as it stands; `response` is None while it is pending. Times are aware datetimes."""

    approval_id: str
    approval_request_id: str
    execution_id: str
    round: int
    status: str
    response: Answer | None = None
    request_url: str | None = None
    requested_at: datetime | None = None
    responded_at: datetime | None = None
    expires_at: datetime | None = None
    execution_status: str | None = None

    @property
    def final(self) -> bool:
        """True when it will not change any more."""
        return self.status in FINAL_APPROVAL


class Approval(ApprovalStatus, frozen=True, kw_only=True):
    """An approval with what its reviewer sees; `history` only where one approval was asked for."""

    node_id: str | None = None
    title: str | None = None
    description: str | None = None
    payload: Any = None
    payload_digest: str | None = None
    on_expiry: str | None = None
    form: Form | None = None
    history: list[dict[str, Any]] = []


class Asked(Struct, frozen=True, kw_only=True):
    """The answer to an ask: the approval that stands, with `response` when it is final already."""

    approval_id: str
    approval_request_id: str
    round: int
    status: str
    approval_request_url: str | None = None
    requested_at: datetime | None = None
    expires_at: datetime | None = None
    payload_digest: str | None = None
    response: Answer | None = None

    @property
    def final(self) -> bool:
        """True when it is decided, expired or withdrawn already."""
        return self.status in FINAL_APPROVAL


class Decided(Struct, frozen=True, kw_only=True):
    """The answer to a decision.

    `status` is processed, or already_processed with what stands in `approval_status`, `decision`, `current_status`.
    """

    status: str
    execution_id: str | None = None
    approval_request_id: str | None = None
    approval_id: str | None = None
    round: int | None = None
    decision: str | None = None
    new_status: str | None = None
    current_status: str | None = None
    approval_status: str | None = None
    replayed: bool = False
    expires_at: datetime | None = None
    type: str | None = None


class Execution(Struct, frozen=True, kw_only=True):
    """One run of an agent's function; `status` is queued, running, waiting, succeeded, failed, cancelled or timeout.

    Of a run that the control plane gave to an agent (`dispatched`): `fence` counts how often, `instance_id` is who
    has it, `attempts` and `last_error` are those of giving it away now, and `outcome_pending` says that its code has
    not seen yet how it ended.
    """

    execution_id: str
    node_id: str
    status: str
    status_reason: str | None = None
    run_id: str | None = None
    parent_execution_id: str | None = None
    reasoner: str | None = None
    pending_approvals: int = 0
    input: Any = None
    result: Any = None
    error: Any = None
    created_at: datetime | None = None
    started_at: datetime | None = None
    updated_at: datetime | None = None
    ended_at: datetime | None = None
    dispatched: bool = False
    fence: int = 0
    instance_id: str | None = None
    outcome_pending: bool = False
    attempts: int = 0
    last_error: str | None = None

    @property
    def final(self) -> bool:
        """True when the status will not change any more."""
        return self.status in FINAL_EXECUTION

    @property
    def ended_by_approval(self) -> bool:
        """True when a rejection or an expiry cancelled it: its code may still clean up and report."""
        return ended_by_approval(self.status, self.status_reason)


class Step(Struct, frozen=True, kw_only=True):
    """What a run did once: `result` is its JSON, `previous` the place that it stands at, `position` counts from 1."""

    name: str
    occurrence: int
    position: int
    previous: str | None = None
    result: Any = None
    at: datetime | None = None


class StepPage(Struct, frozen=True):
    """One page of a run's steps in the order they were stored; `next_after` is None on the last one."""

    steps: list[Step]
    next_after: int | None = None


class Queued(Struct, frozen=True, kw_only=True):
    """A run that an agent is being found for."""

    execution_id: str
    status: str
    run_id: str | None = None
    target: str | None = None
    created_at: datetime | None = None


class Executed(Struct, frozen=True, kw_only=True):
    """A run as it stood when a call that waited for its end was answered."""

    execution_id: str
    status: str

    @property
    def final(self) -> bool:
        """True when it is over."""
        return self.status in FINAL_EXECUTION


class Instance(Struct, frozen=True, kw_only=True):
    """One process of a node; `status` is live, draining (it takes nothing new) or gone."""

    instance_id: str
    base_url: str
    status: str
    version: str | None = None
    reasoners: list[str] = []
    lease_until: datetime | None = None
    registered_at: datetime | None = None
    seen_at: datetime | None = None


class Node(Struct, frozen=True, kw_only=True):
    """An agent program as it registered last, with its instances; `reasoners` say what each accepts."""

    node_id: str
    version: str | None = None
    reasoners: list[dict[str, Any]] = []
    instances: list[Instance] = []
    max_concurrent: int | None = None
    registered_at: datetime | None = None


class NodePage(Struct, frozen=True):
    """One page of nodes, each with its instances that are there; `next_cursor` is None on the last one."""

    nodes: list[Node]
    next_cursor: str | None = None


class Registered(Struct, frozen=True, kw_only=True):
    """The answer to a registration: how long the instance counts as alive, and how often it should say so."""

    lease_seconds: float = 15.0
    heartbeat_seconds: float = 5.0


class Beaten(Struct, frozen=True, kw_only=True):
    """The answer to a heartbeat."""

    lease_seconds: float = 15.0


class HandedBackRuns(Struct, frozen=True):
    """Those of the runs that were the instance's, and are nobody's now."""

    handed_back: list[str]


class ApprovalPage(Struct, frozen=True):
    """One page of approvals; `next_cursor` is None on the last one."""

    approvals: list[Approval]
    next_cursor: str | None = None


class ExecutionPage(Struct, frozen=True):
    """One page of executions; `next_cursor` is None on the last one."""

    executions: list[Execution]
    next_cursor: str | None = None


class DeliveryPage(Struct, frozen=True):
    """One page of callback deliveries, each as the control plane shows it."""

    deliveries: list[dict[str, Any]]
    next_cursor: str | None = None


class ParkedPage(Struct, frozen=True):
    """Decisions that came before their question, each as the control plane shows it."""

    parked: list[dict[str, Any]]
    next_cursor: str | None = None


class Settled(Struct, frozen=True):
    """Those of the approvals waited for that are final; empty when the wait passed."""

    approvals: list[ApprovalStatus]


class Event(Struct, frozen=True):
    """One history row of the live stream; `id` resumes the stream after it."""

    id: str
    type: str
    data: Any


def ended_by_approval(status: str | None, status_reason: str | None) -> bool:
    """True when this is how a rejection or an expiry ends an execution."""
    reason = status_reason or ""
    return status == "cancelled" and reason.startswith(("approval_rejected", "approval_expired"))


def result_of(standing: ApprovalStatus | Asked, execution_id: str) -> ApprovalResult:
    """The result that a final approval means; an unknown status is an error, never a decision.

    Args:
        standing: a final approval.
        execution_id: the execution that asked.

    Raises:
        ValueError: the status is none of the known words.
    """
    if standing.status not in FINAL_APPROVAL:
        raise ValueError(f"unknown approval status {standing.status!r}")
    answer = standing.response
    return ApprovalResult(
        decision=standing.status,  # type: ignore[arg-type]  # narrowed by the check above
        feedback=answer.feedback if answer else "",
        execution_id=execution_id,
        approval_request_id=standing.approval_request_id,
        approval_id=standing.approval_id,
        round=standing.round,
        data=answer.data if answer else None,
    )
