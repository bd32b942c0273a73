"""Approvals to look at: lists with stable cursors, and one with everything that happened to it."""

from datetime import datetime
from typing import Annotated, Any, Literal

from litestar import Request, get
from litestar.params import FromPath, FromQuery, Parameter
from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus
from controlplane.edge import paging
from controlplane.edge.deps import base_of, looking
from controlplane.edge.paths import path_approval
from controlplane.http.shapes import ApprovalOut, approval_of
from controlplane.services import approvals as service
from controlplane.storage import approvals, history
from controlplane.storage.approvals import Filter
from controlplane.storage.history import Entry

Text = Annotated[str | None, Parameter(max_length=paging.MAX_TEXT)]
Order = Literal["requested", "deadline"]


class EntryOut(Struct):
    """One thing that happened: what, when, through whom."""

    at: datetime
    type: str
    actor_kind: str
    actor_name: str
    actor_via: str
    execution_id: str | None
    approval_id: str | None
    approval_request_id: str | None
    node_id: str | None
    data: dict[str, Any]


class ApprovalDetailOut(ApprovalOut, kw_only=True):
    """An approval with its history, oldest first."""

    history: list[EntryOut]


class ApprovalsOut(Struct):
    """A page of approvals; `next_cursor` is null on the last one."""

    approvals: list[ApprovalOut]
    next_cursor: str | None


@get("/approvals")
async def list_approvals(  # noqa: PLR0913, PLR0917 - each is a parameter of the query
    request: Request[Any, Any, Any],
    status: FromQuery[ApprovalStatus | None] = None,
    node_id: Text = None,
    execution_id: Text = None,
    approval_request_id: Text = None,
    q: Text = None,
    order: FromQuery[Order] = "requested",
    limit: paging.Limit = paging.DEFAULT_LIMIT,
    cursor: paging.Cursor = None,
) -> ApprovalsOut:
    """Approvals, the newest first, or by deadline, the soonest first; `q` looks in titles and ids."""
    which = Filter(
        status=status,
        node_id=paging.clean("node_id", node_id),
        execution_id=paging.clean("execution_id", execution_id),
        approval_request_id=paging.clean("approval_request_id", approval_request_id),
        text=paging.clean("q", q) or None,
        by_deadline=order == "deadline",
    )
    async with looking(request) as conn:
        found = await approvals.page(conn, which, paging.after(cursor), limit + 1)
    shown = [approval_of(approval, base_of(request)) for approval in found[:limit]]
    last = shown[-1] if len(found) > limit else None
    key = None if last is None else last.expires_at if which.by_deadline else last.requested_at
    return ApprovalsOut(shown, None if last is None or key is None else paging.cursor(key, last.approval_id))


@get("/approvals/{approval_id:str}")
async def get_approval(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> ApprovalDetailOut:
    """One approval, with its history."""
    async with looking(request) as conn:
        shown = await service.look(conn, path_approval(approval_id))
        entries = await history.of_approval(conn, shown.approval_id)
    fields = approval_of(shown, base_of(request))
    known = {field: getattr(fields, field) for field in fields.__struct_fields__}
    return ApprovalDetailOut(**known, history=[entry_out(entry) for entry in entries])


def entry_out(entry: Entry) -> EntryOut:
    """A history row as sent."""
    return EntryOut(**{field: getattr(entry, field) for field in EntryOut.__struct_fields__})
