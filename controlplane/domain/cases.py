"""A case: an execution with its approvals at one moment, and every move that is allowed on it.

Each function takes a case as it was locked and read, and returns the case as it must be written, with the facts
that go into history and the approvals whose agent must be told. Nothing else in the server decides on state.
"""

from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain.approvals import (
    EFFECT_STATUS,
    TRANSITIONS,
    Approval,
    ApprovalStatus,
    Effect,
    Ending,
    ending_of,
)
from controlplane.domain.dispatching import Order
from controlplane.domain.errors import InvalidAnswer
from controlplane.domain.events import SWEEPER, Actor, Fact, FactType
from controlplane.domain.executions import (
    EXECUTION_FINISHED,
    FINAL_EXECUTION,
    WAITING_FOR_APPROVAL,
    Execution,
    ExecutionStatus,
)


class Case(Struct, frozen=True, kw_only=True):
    """An execution and its approvals (the pending ones, and those that are meant), as they stand at `at`.

    `facts` go into history; `tellings` are the ids of approvals whose agent is to be told; `order` is what becomes of
    the execution's place in the dispatch queue, None for nothing.
    """

    execution: Execution
    approvals: tuple[Approval, ...]
    at: datetime
    facts: tuple[Fact, ...] = ()
    tellings: tuple[str, ...] = ()
    order: Order | None = None

    def approval(self, approval_id: str) -> Approval:
        """The approval with this id; it must be in the case."""
        return next(a for a in self.approvals if a.approval_id == approval_id)

    def pending(self) -> list[Approval]:
        """The approvals that wait for an answer, by id."""
        return sorted((a for a in self.approvals if not a.final), key=lambda a: a.approval_id)


class Answer(Struct, frozen=True, kw_only=True):
    """A decision as it arrived: `response` is the sender's JSON as bytes, None when there was none.

    `values` are those it gives to a form; `fits` is set by `domain.form_answers` alone, which judges them.
    """

    status: ApprovalStatus
    actor: Actor
    feedback: str = ""
    response: bytes | None = None
    values: bytes | None = None
    fits: bool = False


def expire_due(case: Case) -> Case:
    """Expire every pending approval at or past its deadline, the earliest first; others may be withdrawn by it."""
    due = sorted((a for a in case.pending() if a.expires_at <= case.at), key=lambda a: (a.expires_at, a.approval_id))
    for approval in due:
        case = settle(case, approval.approval_id, Answer(status=ApprovalStatus.EXPIRED, actor=SWEEPER))
    return case


def settle(case: Case, approval_id: str, answer: Answer) -> Case:
    """End a pending approval as the table says; one that is final already stays as it is.

    The caller has expired what is due (`expire_due`), so an answer that meets a pending approval is in time.

    Raises:
        InvalidAnswer: it approves a question with a form, and nobody judged its values to fit.
    """
    approval = case.approval(approval_id)
    if approval.final:
        return case
    transition = TRANSITIONS[ending_of(answer.status, approval.on_expiry)]
    if approval.form is not None and transition.to is ApprovalStatus.APPROVED and not answer.fits:
        raise InvalidAnswer
    case = progress(_close(case, approval, answer, transition.to))
    reason = _reason(transition.reason, answer.feedback if transition.with_feedback else "")
    if transition.effect is Effect.RESUME:
        return _wake(_tell(_resume(case, reason, answer.actor), (approval_id,)))
    others = tuple(a.approval_id for a in case.pending())
    case = _withdraw_all(case, answer.actor)
    case = move(case, EFFECT_STATUS[Effect.CANCEL], reason, answer.actor)
    # Its code has not seen this end; should its instance be gone, or go, it is dispatched once more for that.
    case = with_execution(case, outcome_pending=case.execution.replay)
    return _wake(_tell(case, (approval_id, *others)))


def cancel(case: Case, reason: str, actor: Actor) -> Case:
    """End an execution on an operator's word: its pending approvals are withdrawn, and their agent is told."""
    if case.execution.final:
        return case
    return _tell(*_end(case, ExecutionStatus.CANCELLED, reason, actor, order=Order.CANCEL))


def report(case: Case, status: ExecutionStatus, actor: Actor, reason: str | None = None) -> Case:
    """Take an agent's own report: an end ends the execution and withdraws what is pending, anything else is nothing.

    A running report races with asking in every run, so it must not undo `waiting`. A final status never changes.
    """
    if status not in FINAL_EXECUTION:
        return case
    if case.execution.final:
        return with_execution(case, outcome_pending=False, order=Order.NOTHING) if case.execution.dispatched else case
    return end(case, status, reason or EXECUTION_FINISHED, actor)


def end(case: Case, status: ExecutionStatus, reason: str, actor: Actor, *, order: Order = Order.NOTHING) -> Case:
    """End an execution in any other way than by an answer: what is pending is withdrawn, and nobody is told of it.

    `order` is what its agent is sent then, where one has it.
    """
    case, withdrawn = _end(case, status, reason, actor, order=order)
    return _stamp(case, withdrawn)


def open_approval(case: Case, approval: Approval, actor: Actor) -> Case:
    """Add a new pending approval: the execution waits for it."""
    case = replace(case, approvals=(*case.approvals, approval))
    data = {"round": approval.round, "expires_at": approval.expires_at, "payload_digest": approval.payload_digest}
    case = progress(record(case, about(approval, FactType.APPROVAL_REQUESTED, actor, data)))
    return move(case, ExecutionStatus.WAITING, WAITING_FOR_APPROVAL, actor)


def move(case: Case, status: ExecutionStatus, reason: str | None, actor: Actor, *, worked: bool = True) -> Case:
    """Set the execution's status, reason and count of pending approvals, and record it where the status changes.

    What a run worked until now counts against its limit, unless it is lost (`worked` is False).
    """
    was = case.execution
    running = status is ExecutionStatus.RUNNING and (was.instance_id is not None or not was.dispatched)
    since = was.running_since or case.at
    seconds = (case.at - since).total_seconds() if worked and not running else 0.0
    case = with_execution(
        case,
        status=status,
        status_reason=reason,
        pending_approvals=len(case.pending()),
        ended_at=case.at if status in FINAL_EXECUTION else None,
        running_since=since if running else None,
        worked_seconds=was.worked_seconds + seconds,
    )
    if status is was.status:
        return case
    data = {"from": was.status, "to": status, "reason": reason}
    return record(case, about_run(was, f"execution.{status}", actor, data))


def progress(case: Case) -> Case:
    """Keep that the run got further: what it does at its next dispatch is something new."""
    return with_execution(case, stalls=0)


def with_execution(case: Case, *, order: Order | None = None, **changes: Any) -> Case:
    """The case with some fields of its execution changed, and its place in the queue where `order` says so."""
    return replace(case, execution=replace(case.execution, **changes), order=order or case.order)


def record(case: Case, fact: Fact) -> Case:
    """The case with one more fact for history."""
    return replace(case, facts=(*case.facts, fact))


def about_run(run: Execution, type_: str, actor: Actor, data: dict[str, Any] | None = None) -> Fact:
    """A fact about an execution."""
    return Fact(type=type_, actor=actor, execution_id=run.execution_id, node_id=run.node_id, data=data or {})


def _end(
    case: Case, status: ExecutionStatus, reason: str, actor: Actor, *, order: Order
) -> tuple[Case, tuple[str, ...]]:
    """The execution ended, what was pending withdrawn; with the ids of those."""
    pending = tuple(a.approval_id for a in case.pending())
    held = case.execution.instance_id is not None
    case = move(_withdraw_all(case, actor), status, reason, actor)
    if case.execution.dispatched:
        case = with_execution(case, order=order if held else Order.NOTHING)
    return case, pending


def _wake(case: Case) -> Case:
    """A run that rests without a process is dispatched once it has an answer."""
    run = case.execution
    resting = run.wants_an_agent and run.replay and run.instance_id is None
    return replace(case, order=Order.RUN) if resting else case


def _resume(case: Case, reason: str, actor: Actor) -> Case:
    if case.pending():
        return move(case, ExecutionStatus.WAITING, WAITING_FOR_APPROVAL, actor)
    return move(case, EFFECT_STATUS[Effect.RESUME], reason, actor)


def _withdraw_all(case: Case, actor: Actor) -> Case:
    withdrawn = Answer(status=TRANSITIONS[Ending.WITHDRAWN].to, actor=actor)
    for approval in case.pending():
        case = _close(case, approval, withdrawn, withdrawn.status)
    return case


def _close(case: Case, approval: Approval, answer: Answer, to: ApprovalStatus) -> Case:
    closed = replace(
        approval, status=to, decided_at=case.at, feedback=answer.feedback or None, response=answer.response
    )
    others = tuple(closed if a.approval_id == closed.approval_id else a for a in case.approvals)
    data: dict[str, Any] = {"from": approval.status, "to": to, "round": approval.round}
    if answer.feedback:
        data["feedback"] = brief(answer.feedback)
    fact = replace(about(approval, f"approval.{to}", answer.actor, data), settles=True)
    return record(replace(case, approvals=others), fact)


def _tell(case: Case, approval_ids: tuple[str, ...]) -> Case:
    return replace(_stamp(case, approval_ids), tellings=case.tellings + approval_ids)


def _stamp(case: Case, approval_ids: tuple[str, ...]) -> Case:
    """Keep with each approval that ended the execution's status at that decision."""
    status = case.execution.status
    stamped = tuple(replace(a, new_status=status) if a.approval_id in approval_ids else a for a in case.approvals)
    return replace(case, approvals=stamped)


def about(approval: Approval, type_: str, actor: Actor, data: dict[str, Any] | None = None) -> Fact:
    """A fact about one approval."""
    return Fact(
        type=type_,
        actor=actor,
        execution_id=approval.execution_id,
        approval_id=approval.approval_id,
        approval_request_id=approval.approval_request_id,
        node_id=approval.node_id,
        data=data or {},
    )


def _reason(reason: str, feedback: str) -> str:
    return f"{reason}: {brief(feedback)}" if feedback else reason


def brief(text: str) -> str:
    """A comment as it stands in reasons and history: whole up to 500 characters; the approval keeps all of it."""
    return text if len(text) <= 500 else text[:499] + "\u2026"
