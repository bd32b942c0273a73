"""Operators see here what agents are told and what waits for a question."""

from datetime import datetime
from typing import Any

from litestar import Request, get, post
from litestar.params import FromPath, FromQuery
from msgspec import Raw, Struct

from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.errors import DeliveryNotFound
from controlplane.domain.ids import DELIVERY_PREFIX
from controlplane.edge import paging
from controlplane.edge.deps import looking, operator, transaction
from controlplane.http.shapes import raw
from controlplane.services import deliveries as service
from controlplane.storage import deliveries, parked
from controlplane.storage.deliveries import Listed


class DeliveryOut(Struct, kw_only=True):
    """A callback to an agent; its secret is never shown. One that is `resting` waits for its agent to come back."""

    delivery_id: str
    approval_id: str
    execution_id: str
    node_id: str
    status: DeliveryStatus
    url: str
    attempts: int
    created_at: datetime
    due_at: datetime
    last_attempt_at: datetime | None
    last_status: int | None
    last_error: str | None
    settled_at: datetime | None
    resting: bool


class DeliveriesOut(Struct):
    """A page of deliveries, newest first."""

    deliveries: list[DeliveryOut]
    next_cursor: str | None


class EarlyOut(Struct):
    """An answer that came before its question."""

    parked_id: str
    sender: str
    approval_request_id: str
    execution_id: str | None
    decision: str
    feedback: str
    response: Raw | None
    received_at: datetime
    expires_at: datetime


class EarlyListOut(Struct):
    """A page of parked answers, newest first."""

    parked: list[EarlyOut]
    next_cursor: str | None


@get("/deliveries")
async def list_deliveries(
    request: Request[Any, Any, Any],
    status: FromQuery[DeliveryStatus | None] = None,
    limit: paging.Limit = paging.DEFAULT_LIMIT,
    cursor: paging.Cursor = None,
) -> DeliveriesOut:
    """Callbacks, newest first."""
    async with looking(request) as conn:
        found = await deliveries.page(conn, status, paging.after(cursor), limit + 1)
    shown = [delivery_out(one) for one in found[:limit]]
    more = paging.cursor(shown[-1].created_at, shown[-1].delivery_id) if len(found) > limit else None
    return DeliveriesOut(shown, more)


@post("/deliveries/{delivery_id:str}/redrive", status_code=200)
async def redrive_delivery(request: Request[Any, Any, Any], delivery_id: FromPath[str]) -> DeliveryOut:
    """Send a pending or dead callback now, with all its tries before it."""
    if not delivery_id.startswith(DELIVERY_PREFIX) or not delivery_id.isascii() or not delivery_id.isprintable():
        raise DeliveryNotFound
    async with transaction(request) as conn:
        again = await service.redrive(conn, delivery_id, operator(request))
    return delivery_out(again)


@get("/parked")
async def list_parked(
    request: Request[Any, Any, Any], limit: paging.Limit = paging.DEFAULT_LIMIT, cursor: paging.Cursor = None
) -> EarlyListOut:
    """Answers that came before their question, newest first."""
    async with looking(request) as conn:
        found = await parked.page(conn, paging.after(cursor), limit + 1)
    shown = [
        EarlyOut(
            one.parked_id,
            one.sender,
            one.approval_request_id,
            one.execution_id,
            one.decision,
            one.feedback,
            raw(one.response),
            one.received_at,
            one.expires_at,
        )
        for one in found[:limit]
    ]
    more = paging.cursor(shown[-1].received_at, shown[-1].parked_id) if len(found) > limit else None
    return EarlyListOut(shown, more)


def delivery_out(listed: Listed) -> DeliveryOut:
    """A delivery as sent."""
    return DeliveryOut(**{field: getattr(listed, field) for field in DeliveryOut.__struct_fields__})
