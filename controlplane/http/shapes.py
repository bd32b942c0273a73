"""The JSON of approvals as more than one route sends it; apart from the domain, so that secrets cannot slip out."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct

from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage.approvals import Shown

_NULL = Raw(b"null")


class AnswerOut(Struct):
    """An answer: the decision, the reviewer's words, and exactly what the sender put into its `response`."""

    decision: ApprovalStatus
    feedback: str
    data: Raw


class StatusOut(Struct):
    """Where an approval stands; `response` is null while it is pending."""

    status: ApprovalStatus
    response: AnswerOut | None
    request_url: str | None
    requested_at: datetime
    responded_at: datetime | None
    expires_at: datetime
    approval_request_id: str
    approval_id: str
    round: int
    execution_id: str
    execution_status: ExecutionStatus


class ApprovalOut(StatusOut, kw_only=True):
    """An approval as reviewers and operators see it."""

    node_id: str
    title: str | None
    description: str | None
    payload: Raw | None
    payload_digest: str | None
    on_expiry: OnExpiry
    decided_by: str | None
    form: Raw | None


def answer_of(approval: Approval) -> AnswerOut | None:
    """The answer of an approval, or None while it is pending."""
    if not approval.final:
        return None
    return AnswerOut(approval.status, approval.feedback or "", raw(approval.response) or _NULL)


def status_of(shown: Shown, base: str | None) -> StatusOut:
    """Where an approval stands; `base` is the address that links to our own pages begin with."""
    return StatusOut(**_status(shown, base))


def approval_of(shown: Shown, base: str | None) -> ApprovalOut:
    """An approval in full."""
    return ApprovalOut(
        **_status(shown, base),
        node_id=shown.node_id,
        title=shown.title,
        description=shown.description,
        payload=raw(shown.payload),
        payload_digest=shown.payload_digest,
        on_expiry=shown.on_expiry,
        decided_by=shown.decided_by,
        form=raw(shown.form),
    )


def page_of(approval: Approval, base: str | None) -> str | None:
    """Where a reviewer looks at an approval: the asker's own page, else the inbox's."""
    if approval.approval_request_url is not None or base is None:
        return approval.approval_request_url
    return f"{base}/inbox/{approval.approval_id}"


def raw(value: bytes | None) -> Raw | None:
    """JSON bytes as they are."""
    return None if value is None else msgspec.Raw(value)


def _status(shown: Shown, base: str | None) -> dict[str, Any]:
    return {
        "status": shown.status,
        "response": answer_of(shown),
        "request_url": page_of(shown, base),
        "requested_at": shown.requested_at,
        "responded_at": shown.decided_at,
        "expires_at": shown.expires_at,
        "approval_request_id": shown.approval_request_id,
        "approval_id": shown.approval_id,
        "round": shown.round,
        "execution_id": shown.execution_id,
        "execution_status": shown.execution_status,
    }
