"""What tests build with: actors, ids in order, cases, asks and webhooks, each with sensible defaults."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from msgspec.structs import replace

from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.asking import Asked
from controlplane.domain.cases import Case
from controlplane.domain.decisions import Decision, DecisionReceived
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.executions import Execution, ExecutionStatus
from controlplane.domain.ids import time_ordered
from controlplane.domain.nodes import Instance, InstanceStatus
from controlplane.domain.parking import keys_of
from controlplane.services.webhooks import Incoming

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)

AGENT = Actor(ActorKind.AGENT, "node-1", "api")
PERSON = Actor(ActorKind.PERSON, "reviewer", "api", "127.0.0.1")
OPERATOR = Actor(ActorKind.PERSON, "operator", "api")
DIGEST = "sha256:" + "a" * 64
OTHER_DIGEST = "sha256:" + "b" * 64
CALLBACK = "http://127.0.0.1:9/webhooks/approval"


def ids() -> Callable[[str], str]:
    """A maker of ids that are unique and sort in the order they were made."""
    numbers = count(1)

    def new_id(prefix: str) -> str:
        number = next(numbers)
        return time_ordered(prefix, NOW + timedelta(milliseconds=number), number.to_bytes(10, "big"))

    return new_id


def approval(name: str = "a", **changes: Any) -> Approval:
    """An approval of execution `run-1`, asked an hour ago and due in an hour; pending unless a status is given."""
    fields: dict[str, Any] = {
        "approval_id": f"apr_{name}",
        "execution_id": "run-1",
        "node_id": "node-1",
        "approval_request_id": name,
        "round": 1,
        "status": ApprovalStatus.PENDING,
        "on_expiry": OnExpiry.CANCEL,
        "requested_at": NOW - HOUR,
        "expires_at": NOW + HOUR,
        "callback_url": CALLBACK,
    }
    fields |= changes
    if fields["status"] is not ApprovalStatus.PENDING:
        fields = {"decided_at": NOW - HOUR / 2, "new_status": ExecutionStatus.RUNNING} | fields
    return Approval(**fields)


def case(*approvals: Approval, status: ExecutionStatus | None = None, at: datetime = NOW, **changes: Any) -> Case:
    """A consistent case of these approvals: waiting while one is pending, running otherwise, or in `status`."""
    pending = sum(1 for a in approvals if not a.final)
    status = status or (ExecutionStatus.WAITING if pending else ExecutionStatus.RUNNING)
    execution = Execution(
        execution_id="run-1",
        node_id="node-1",
        status=status,
        status_reason=changes.pop("status_reason", None),
        pending_approvals=pending,
        created_at=NOW - 2 * HOUR,
        ended_at=changes.pop("ended_at", None),
    )
    return Case(execution=execution, approvals=approvals, at=at, **changes)


def instance(instance_id: str = "i1", *, replay: bool = True, **changes: Any) -> Instance:
    """A live instance of node-1 that serves `work`."""
    fields: dict[str, Any] = {
        "node_id": "node-1",
        "instance_id": instance_id,
        "base_url": f"http://127.0.0.1/{instance_id}",
        "version": "1",
        "reasoners": ("work",),
        "replay": replay,
        "fenced": replay,
        "status": InstanceStatus.LIVE,
        "lease_seconds": 15.0,
        "lease_until": NOW,
        "registered_at": NOW,
        "seen_at": NOW,
    }
    return Instance(**(fields | changes))


def of(status: ExecutionStatus, *approvals: Any, **execution: Any) -> Case:
    """A dispatched run in some state."""
    plain = case(*approvals, status=status)
    ended = NOW if plain.execution.final else None
    return replace(plain, execution=replace(plain.execution, dispatched=True, ended_at=ended, **execution))


def held(status: ExecutionStatus, *approvals: Any, **execution: Any) -> Case:
    """A dispatched run that instance i1 holds under fence 3."""
    return of(status, *approvals, **({"fence": 3, "instance_id": "i1", "replay": True, "fenced": True} | execution))


def asked(request_id: str = "a", execution_id: str = "run-1", **changes: Any) -> Asked:
    """An ask that its server may answer for an hour."""
    fields: dict[str, Any] = {"execution_id": execution_id, "approval_request_id": request_id, "expires_in": HOUR}
    return Asked(**(fields | changes))


def webhook(
    request_id: str | None = "a",
    decision: Decision = Decision.APPROVED,
    *,
    sender: str = "desk",
    webhook_id: str | None = None,
    body: bytes | None = None,
    **received: Any,
) -> Incoming:
    """A verified webhook; its bytes follow from what it says unless `body` is given."""
    fields: dict[str, Any] = {
        "request_id": request_id,
        "approval_id": None,
        "execution_id": None,
        "round": None,
        "decision": decision,
        "feedback": "",
        "response": None,
        "shape": "flat",
    }
    fields |= received
    body = repr(sorted(fields.items())).encode() if body is None else body
    return Incoming(
        sender=sender,
        received=DecisionReceived(**fields),
        keys=keys_of(webhook_id, body),
        size=len(body),
    )
