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

    `facts` go into history; `tellings` are the ids of approvals whose agent is to be told.
    """

    execution: Execution
    approvals: tuple[Approval, ...]
    at: datetime
    facts: tuple[Fact, ...] = ()
    tellings: tuple[str, ...] = ()

    def approval(self, approval_id: str) -> Approval:
        """The approval with this id; it must be in the case."""
        return next(a for a in self.approvals if a.approval_id == approval_id)

    def pending(self) -> list[Approval]:
        """The approvals that wait for an answer, by id."""
        return sorted((a for a in self.approvals if not a.final), key=lambda a: a.approval_id)


class Answer(Struct, frozen=True, kw_only=True):
    """A decision as it arrived: `response` is the sender's JSON as bytes, None when there was none."""

    status: ApprovalStatus
    actor: Actor
    feedback: str = ""
    response: bytes | None = None


def expire_due(case: Case) -> Case:
    """Expire every pending approval at or past its deadline, the earliest first; others may be withdrawn by it."""
    due = sorted((a for a in case.pending() if a.expires_at <= case.at), key=lambda a: (a.expires_at, a.approval_id))
    for approval in due:
        case = settle(case, approval.approval_id, Answer(status=ApprovalStatus.EXPIRED, actor=SWEEPER))
    return case


def settle(case: Case, approval_id: str, answer: Answer) -> Case:
    """End a pending approval as the table says; one that is final already stays as it is.

    The caller has expired what is due (`expire_due`), so an answer that meets a pending approval is in time.
    """
    approval = case.approval(approval_id)
    if approval.final:
        return case
    transition = TRANSITIONS[ending_of(answer.status, approval.on_expiry)]
    case = _close(case, approval, answer, transition.to)
    reason = _reason(transition.reason, answer.feedback if transition.with_feedback else "")
    if transition.effect is Effect.RESUME:
        return _tell(_resume(case, reason, answer.actor), (approval_id,))
    others = tuple(a.approval_id for a in case.pending())
    case = _withdraw_all(case, answer.actor)
    case = move(case, EFFECT_STATUS[Effect.CANCEL], reason, answer.actor)
    return _tell(case, (approval_id, *others))


def cancel(case: Case, reason: str, actor: Actor) -> Case:
    """End an execution on an operator's word: its pending approvals are withdrawn, and their agent is told."""
    if case.execution.final:
        return case
    pending = tuple(a.approval_id for a in case.pending())
    case = _withdraw_all(case, actor)
    case = move(case, ExecutionStatus.CANCELLED, reason, actor)
    return _tell(case, pending)


def report(case: Case, status: ExecutionStatus, actor: Actor, reason: str | None = None) -> Case:
    """Take an agent's own report: an end ends the execution and withdraws what is pending, anything else is nothing.

    A running report races with asking in every run, so it must not undo `waiting`. A final status never changes.
    """
    if status not in FINAL_EXECUTION or case.execution.final:
        return case
    pending = tuple(a.approval_id for a in case.pending())
    case = move(_withdraw_all(case, actor), status, reason or EXECUTION_FINISHED, actor)
    return _stamp(case, pending)


def open_approval(case: Case, approval: Approval, actor: Actor) -> Case:
    """Add a new pending approval: the execution waits for it."""
    case = replace(case, approvals=(*case.approvals, approval))
    data = {"round": approval.round, "expires_at": approval.expires_at, "payload_digest": approval.payload_digest}
    case = _record(case, about(approval, FactType.APPROVAL_REQUESTED, actor, data))
    return move(case, ExecutionStatus.WAITING, WAITING_FOR_APPROVAL, actor)


def move(case: Case, status: ExecutionStatus, reason: str, actor: Actor) -> Case:
    """Set the execution's status, reason and count of pending approvals, and record it where the status changes."""
    was = case.execution
    now = replace(
        was,
        status=status,
        status_reason=reason,
        pending_approvals=len(case.pending()),
        ended_at=case.at if status in FINAL_EXECUTION else None,
    )
    case = replace(case, execution=now)
    if now.status is was.status:
        return case
    fact = Fact(
        type=f"execution.{status}",
        actor=actor,
        execution_id=was.execution_id,
        node_id=was.node_id,
        data={"from": was.status, "to": status, "reason": reason},
    )
    return _record(case, fact)


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
    return _record(replace(case, approvals=others), fact)


def _tell(case: Case, approval_ids: tuple[str, ...]) -> Case:
    return replace(_stamp(case, approval_ids), tellings=case.tellings + approval_ids)


def _stamp(case: Case, approval_ids: tuple[str, ...]) -> Case:
    """Keep with each approval that ended the execution's status at that decision."""
    status = case.execution.status
    stamped = tuple(replace(a, new_status=status) if a.approval_id in approval_ids else a for a in case.approvals)
    return replace(case, approvals=stamped)


def _record(case: Case, fact: Fact) -> Case:
    return replace(case, facts=(*case.facts, fact))


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
