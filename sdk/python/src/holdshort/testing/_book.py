"""The rules of approvals in memory: what may be asked, decided and withdrawn, on a clock that only tests move."""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdshort._decision_words import known
from holdshort._wire import FINAL_EXECUTION, Form, Step

_REASONS = {
    "approved": "approval_granted",
    "request_changes": "approval_changes_requested",
    "rejected": "approval_rejected",
    "expired": "approval_expired",
    "withdrawn": "approval_withdrawn",
}
_FAULTS = {
    "webhook_not_configured": 503,
    "step_too_large": 413,
    "invalid_field": 422,
    "invalid_decision": 400,
    "execution_ownership_mismatch": 403,
    "body_too_large": 413,
    "invalid_answer": 422,
    **dict.fromkeys(("request_expired", "request_cancelled", "answer_taken"), 410),
}


class Refusal(Exception):
    """An error answer: its code, its sentence and further members."""

    def __init__(self, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.code = code
        self.more = more
        self.status = _FAULTS.get(code, 404 if code.endswith("_not_found") or code.startswith("no_") else 409)


class Ask(msgspec.Struct, kw_only=True):
    """The body of request-approval."""

    approval_request_id: str
    round: int | None = None
    approval_request_url: str | None = None
    callback_url: str | None = None
    callback_secret: str | None = None
    expires_in_hours: float | None = None
    title: str | None = None
    description: str | None = None
    payload: Any = None
    on_expiry: str = "cancel"
    decided_by: str | None = None
    form: Form | None = None

    @property
    def bound(self) -> tuple[Any, ...]:
        """What an answer covers: asked again with another one, the id stands for something else."""
        return (self.digest, self.on_expiry, self.form)

    @property
    def digest(self) -> str | None:
        """Of the payload's canonical form; None without a payload."""
        if self.payload is None:
            return None
        return hashlib.sha256(msgspec.json.encode(self.payload, order="sorted")).hexdigest()


class Kept(msgspec.Struct, kw_only=True):
    """An approval as it is remembered."""

    approval_id: str
    execution_id: str
    node_id: str
    ask: Ask
    round: int
    requested_at: datetime
    expires_at: datetime
    status: str = "pending"
    responded_at: datetime | None = None
    feedback: str = ""
    data: Any = None
    history: list[dict[str, Any]] = msgspec.field(default_factory=list)

    @property
    def final(self) -> bool:
        """True when it does not change any more."""
        return self.status != "pending"

    @property
    def reopens(self) -> bool:
        """True when the next round may be asked."""
        resumed = self.status == "expired" and self.ask.on_expiry == "resume"
        return self.status in {"request_changes", "withdrawn"} or resumed


class Ran(msgspec.Struct, kw_only=True):
    """An execution as it is remembered."""

    execution_id: str
    node_id: str
    created_at: datetime
    updated_at: datetime
    reasoner: str | None = None
    run_id: str | None = None
    input: Any = None
    status: str = "running"
    status_reason: str | None = None
    result: Any = None
    error: Any = None
    ended_at: datetime | None = None
    dispatched: bool = False
    fence: int = 0
    instance_id: str | None = None
    outcome_pending: bool = False
    idempotency_key: str | None = None
    notes: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    steps: list[Step] = msgspec.field(default_factory=list)


class Book:
    """Every execution and approval; `now` moves only by `advance`.

    Args:
        now: where the clock stands at first.
    """

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.executions: dict[str, Ran] = {}
        self.approvals: dict[str, Kept] = {}
        self._asked: dict[str, dict[str, list[Kept]]] = {}
        self._pending: dict[str, dict[str, Kept]] = {}
        self.events: list[dict[str, Any]] = []
        self.instances: dict[str, Any] = {}
        self.questions: dict[str, Any] = {}
        self.question_events: list[dict[str, Any]] = []
        self.lease_seconds = 15.0

    def advance(self, by: timedelta) -> None:
        """Move the clock, stopping at each deadline on the way."""
        end = self.now + by
        while due := [a for a in self.approvals.values() if not a.final and a.expires_at <= end]:
            first = min(due, key=lambda a: (a.expires_at, a.approval_id))
            self.now = max(self.now, first.expires_at)
            self.settle(first, "expired")
        self.now = end

    def create(self, node_id: str, execution_id: str, **known: Any) -> tuple[Ran, bool]:
        """An execution, and whether it is new."""
        there = self.executions.get(execution_id)
        if there is None:
            run = Ran(execution_id=execution_id, node_id=node_id, created_at=self.now, updated_at=self.now, **known)
            self.executions[execution_id] = run
            self._record("execution.created", run)
            return run, True
        if there.node_id != node_id:
            raise Refusal("execution_exists", "another node owns this execution")
        return there, False

    def execution(self, execution_id: str, node_id: str | None = None) -> Ran:
        """The execution under this id (of this node)."""
        run = self.executions.get(execution_id)
        if run is None:
            raise Refusal("execution_not_found", "no execution has this id")
        if node_id is not None and run.node_id != node_id:
            raise Refusal("execution_ownership_mismatch", "the execution is another node's")
        return run

    def approval(self, approval_id: str) -> Kept:
        """The approval under this id."""
        if approval_id not in self.approvals:
            raise Refusal("approval_not_found", "no approval has this id")
        return self.approvals[approval_id]

    def rounds(self, execution_id: str, approval_request_id: str | None = None) -> list[Kept]:
        """What an execution asked (under an id), oldest first."""
        asked = self._asked.get(execution_id, {})
        if approval_request_id is not None:
            return asked.get(approval_request_id, [])
        return sorted((a for rounds in asked.values() for a in rounds), key=lambda a: a.approval_id)

    def ask(self, run: Ran, ask: Ask) -> Kept:
        """Ask, or ask again: what stands under the id and round, or a new one."""
        rounds = self.rounds(run.execution_id, ask.approval_request_id)
        newest = rounds[-1] if rounds else None
        wanted = ask.round or self._unnamed_round(run, newest)
        if wanted <= len(rounds):
            return self._same(rounds[wanted - 1], ask, named=ask.round is not None)
        if wanted != len(rounds) + 1 or (newest is not None and not newest.reopens):
            raise Refusal("round_not_open", "this round cannot be opened now", newest_round=len(rounds))
        if run.status in FINAL_EXECUTION:
            reason = f"the execution is {run.status} ({run.status_reason}); to go on asking use on_expiry=resume"
            more = {"execution_status": run.status, "status_reason": run.status_reason}
            raise Refusal("invalid_state", reason, **more)
        return self._open(run, ask, wanted)

    def decide(self, approval: Kept, word: str, feedback: str, data: Callable[[str], Any]) -> bool:
        """Take a person's decision; False when it was final already. A different one than stands is refused.

        Args:
            approval: which.
            word: decision or alias.
            feedback: comment for the agent.
            data: what the agent gets, of the decision that the word means.
        """
        decision = known(word)
        if decision is None or decision == "expired":  # which is no person's word
            raise Refusal("invalid_decision", "the decision is none of the known words")
        if approval.final and approval.status != decision:
            raise Refusal("already_decided", "another decision stands", approval_status=approval.status)
        return not approval.final and self.settle(approval, decision, feedback, data(decision))

    def settle(self, approval: Kept, status: str, feedback: str = "", data: Any = None) -> bool:
        """End a pending approval, and what follows for its execution; False when it was final already."""
        if approval.final:
            return False
        run = self.executions[approval.execution_id]
        self._close(approval, status, feedback, data)
        reason = _REASONS[status]
        told = f"{reason}: {feedback}" if feedback and status in {"rejected", "request_changes"} else reason
        if status == "rejected" or (status == "expired" and approval.ask.on_expiry == "cancel"):
            self._end(run, "cancelled", told)
            run.outcome_pending = run.dispatched
        elif not self.pending(run):
            self._move(run, "running", told)
        return True

    def report(self, run: Ran, status: str, result: Any, error: Any, reason: str | None = None) -> None:
        """Take an agent's report; only an end changes anything, a final status stays, and so does the first result."""
        if status not in FINAL_EXECUTION:
            return
        run.outcome_pending = False
        if run.result is None and run.error is None:
            run.result, run.error = result, error
        if run.status not in FINAL_EXECUTION:
            self._end(run, status, reason if reason and status == "failed" else "execution_finished")

    def progressed(self, run: Ran) -> None:
        """Take down that a step was kept."""
        run.updated_at = self.now
        self._record("execution.step", run)

    def cancel(self, run: Ran, reason: str) -> None:
        """Cancel as an operator; what is pending is withdrawn."""
        if run.status not in FINAL_EXECUTION:
            self._end(run, "cancelled", reason)

    def queue(self, run: Ran) -> None:
        """Let a run wait for another instance: the one that had it is gone, or gave it back."""
        self._move(run, "queued", "handed_back")

    def pending(self, run: Ran) -> list[Kept]:
        """What an execution waits for."""
        return list(self._pending.get(run.execution_id, {}).values())

    def _unnamed_round(self, run: Ran, newest: Kept | None) -> int:
        if newest is None:
            return 1
        return newest.round + (newest.reopens and run.status not in FINAL_EXECUTION)

    def _same(self, found: Kept, ask: Ask, *, named: bool) -> Kept:
        bound = named or found.status in {"pending", "approved", "rejected"}
        if bound and found.ask.bound != ask.bound:
            raise Refusal("approval_request_conflict", "this id and round stand for another payload, form or on_expiry")
        found.ask.callback_url, found.ask.callback_secret = ask.callback_url, ask.callback_secret
        return found

    def _open(self, run: Ran, ask: Ask, number: int) -> Kept:
        hours = 72 if ask.expires_in_hours is None else ask.expires_in_hours
        approval = Kept(
            approval_id=f"apr_{len(self.approvals) + 1:08}",
            execution_id=run.execution_id,
            node_id=run.node_id,
            ask=ask,
            round=number,
            requested_at=self.now,
            expires_at=self.now + timedelta(hours=hours),
        )
        self.approvals[approval.approval_id] = approval
        self._asked.setdefault(run.execution_id, {}).setdefault(ask.approval_request_id, []).append(approval)
        self._pending.setdefault(run.execution_id, {})[approval.approval_id] = approval
        self._record("approval.requested", run, approval)
        self._move(run, "waiting", "waiting_for_approval")
        return approval

    def _close(self, approval: Kept, status: str, feedback: str = "", data: Any = None) -> None:
        approval.status, approval.feedback, approval.data = status, feedback, data
        approval.responded_at = self.now
        del self._pending[approval.execution_id][approval.approval_id]
        self._record(f"approval.{status}", self.executions[approval.execution_id], approval)

    def _end(self, run: Ran, status: str, reason: str) -> None:
        for approval in self.pending(run):
            self._close(approval, "withdrawn")
        run.ended_at = self.now
        self._move(run, status, reason)

    def _move(self, run: Ran, status: str, reason: str) -> None:
        changed = run.status != status
        run.status, run.status_reason, run.updated_at = status, reason, self.now
        if changed:
            self._record(f"execution.{status}", run)

    def _record(self, kind: str, run: Ran, approval: Kept | None = None) -> None:
        about = {"execution_id": run.execution_id, "node_id": run.node_id, "at": self.now}
        if approval is not None:
            about |= {"approval_id": approval.approval_id, "round": approval.round}
        event = {"id": f"e{len(self.events) + 1}", "type": kind, "data": about}
        self.events.append(event)
        if approval is not None:
            approval.history.append({"type": kind, **about})
