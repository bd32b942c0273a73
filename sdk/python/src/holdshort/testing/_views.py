"""How the book is shown on the wire."""

from typing import Any

import msgspec

from holdshort._core import path
from holdshort.testing import _nodes
from holdshort.testing._book import Book, Kept, Ran, Refusal


def problem(refusal: Refusal) -> dict[str, Any]:
    """A refusal as a problem document."""
    known = {"type": "about:blank", "title": refusal.code, "status": refusal.status, "detail": str(refusal)}
    return {**known, "error": refusal.code, "message": str(refusal), **refusal.more}


def execution(book: Book, run: Ran) -> dict[str, Any]:
    """An execution."""
    shown = msgspec.structs.asdict(run)
    del shown["notes"], shown["steps"]
    if run.dispatched and run.instance_id is None and _nodes.wants_an_agent(run) and not _nodes.live(book, run.node_id):
        shown["status_reason"] = "waiting_for_node"
    return {**shown, "started_at": run.created_at, "pending_approvals": len(book.pending(run))}


def asked(approval: Kept) -> dict[str, Any]:
    """The answer to an ask."""
    return {
        "approval_request_id": approval.ask.approval_request_id,
        "approval_request_url": _page(approval),
        "status": approval.status,
        "approval_id": approval.approval_id,
        "round": approval.round,
        "requested_at": approval.requested_at,
        "expires_at": approval.expires_at,
        "payload_digest": approval.ask.digest,
        "response": _response(approval),
    }


def status(book: Book, approval: Kept) -> dict[str, Any]:
    """An approval's status."""
    return {
        "status": approval.status,
        "response": _response(approval),
        "request_url": _page(approval),
        "requested_at": approval.requested_at,
        "responded_at": approval.responded_at,
        "expires_at": approval.expires_at,
        "approval_request_id": approval.ask.approval_request_id,
        "approval_id": approval.approval_id,
        "round": approval.round,
        "execution_id": approval.execution_id,
        "execution_status": book.executions[approval.execution_id].status,
    }


def approval(book: Book, kept: Kept) -> dict[str, Any]:
    """An approval with what its reviewer sees."""
    return {
        **status(book, kept),
        "node_id": kept.node_id,
        "title": kept.ask.title,
        "description": kept.ask.description,
        "payload": kept.ask.payload,
        "payload_digest": kept.ask.digest,
        "on_expiry": kept.ask.on_expiry,
        "form": kept.ask.form,
    }


def decided(book: Book, approval: Kept, *, applied: bool) -> dict[str, Any]:
    """The answer to a decision."""
    stands = book.executions[approval.execution_id].status
    known = {
        "status": "processed" if applied else "already_processed",
        "execution_id": approval.execution_id,
        "approval_request_id": approval.ask.approval_request_id,
        "approval_id": approval.approval_id,
        "round": approval.round,
        "decision": approval.status,
    }
    if applied:
        return {**known, "new_status": stands}
    return {**known, "current_status": stands, "approval_status": approval.status}


def _response(approval: Kept) -> dict[str, Any] | None:
    if not approval.final:
        return None
    return {"decision": approval.status, "feedback": approval.feedback, "data": approval.data}


def _page(approval: Kept) -> str:
    return approval.ask.approval_request_url or f"http://control-plane.test{path('approvals', approval.approval_id)}"
