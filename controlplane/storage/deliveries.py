"""Deliveries as they are remembered: claim, settle, tell again. Only the holder of the newest fence writes."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.approvals import Approval
from controlplane.domain.deliveries import (
    IN_FLIGHT_PER_TARGET,
    LEASE,
    TOLD_AGAIN_EVERY,
    Claimed,
    DeliveryStatus,
    target_of,
)
from controlplane.storage.approvals import Place
from controlplane.storage.clock import MOMENT
from controlplane.storage.engine import Connection
from controlplane.storage.rows import columns, texts, to_struct
from controlplane.storage.tables import approvals, deliveries

_NOW = sa.func.clock_timestamp()
_PENDING = deliveries.c.status == DeliveryStatus.PENDING
_FREE = sa.or_(deliveries.c.lease_until.is_(None), deliveries.c.lease_until <= _NOW)


class Listed(Struct, frozen=True, kw_only=True):
    """A delivery as an operator sees it: never its secret."""

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


async def claim(conn: Connection, *, limit: int, full: list[str]) -> list[Claimed]:
    """Take deliveries that are due, under a lease and a new fence; at most a few for each target.

    Args:
        conn: the open transaction.
        limit: how many at most.
        full: targets that have as many tries in flight as they may; they are left out.
    """
    due = (
        sa.select(deliveries.c.delivery_id, deliveries.c.target, deliveries.c.due_at)
        .where(_PENDING, deliveries.c.due_at <= MOMENT, _FREE, deliveries.c.target != sa.all_(texts(full)))
        .order_by(deliveries.c.due_at)
        .limit(limit)
        .subquery()
    )
    place = sa.func.row_number().over(partition_by=due.c.target, order_by=due.c.due_at).label("place")
    ranked = sa.select(due.c.delivery_id, place).subquery()
    first = sa.select(ranked.c.delivery_id).where(ranked.c.place <= IN_FLIGHT_PER_TARGET)
    locked = (
        sa.select(deliveries.c.delivery_id)
        .where(deliveries.c.delivery_id.in_(first), _PENDING, deliveries.c.due_at <= MOMENT, _FREE)
        .with_for_update(skip_locked=True)
        .cte("locked")
        .prefix_with("MATERIALIZED")
    )
    statement = (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == locked.c.delivery_id, deliveries.c.approval_id == approvals.c.approval_id)
        .values(
            fence=deliveries.c.fence + 1,
            attempts=deliveries.c.attempts + 1,
            lease_until=_NOW + LEASE,
            last_attempt_at=_NOW,
        )
        .returning(*_CLAIMED, _NOW.label("now"), *columns(approvals, Approval))
    )
    return [_to_claim(row) for row in await conn.rows(statement)]


_CLAIMED = [deliveries.c[name] for name in ("delivery_id", "url", "target", "secret", "attempts", "fence", "told_at")]


def _to_claim(row: sa.Row[Any]) -> Claimed:
    own = {name: getattr(row, name) for name in Claimed.__struct_fields__ if name != "approval"}
    return Claimed(**own, approval=to_struct(row, Approval))


async def mark_writing(conn: Connection, delivery_id: str, fence: int) -> bool:
    """Keep that this try's request is about to be written: from now on its agent may know. False: taken over."""
    statement = (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == delivery_id, deliveries.c.fence == fence, _PENDING)
        .values(writing_fence=fence)
    )
    return await conn.run(statement) == 1


class Settlement(Struct, frozen=True, kw_only=True):
    """What a try came to."""

    delivery_id: str
    fence: int
    status: DeliveryStatus
    retry_in: timedelta | None
    last_status: int | None
    last_error: str | None


async def settle(conn: Connection, result: Settlement) -> bool:
    """Write what a try came to; False when another has taken the delivery over, and nothing is written then."""
    ended = result.status is not DeliveryStatus.PENDING
    values: dict[str, Any] = {
        "status": result.status,
        "lease_until": None,
        "writing_fence": None,
        "last_status": result.last_status,
        "last_error": result.last_error,
        "settled_at": _NOW if ended else None,
    }
    if result.retry_in is not None:
        values["due_at"] = _NOW + result.retry_in
    statement = (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == result.delivery_id, deliveries.c.fence == result.fence, _PENDING)
        .values(values)
    )
    return await conn.run(statement) == 1


async def tell_again(conn: Connection, approval: Approval, delivery_id: str) -> None:
    """Make an approval's only delivery due again at its present address; a try in flight can no longer settle it.

    At most once a second. The approval is final and has a callback URL; `delivery_id` is used if it has no delivery.
    """
    values = {
        "delivery_id": delivery_id,
        "approval_id": approval.approval_id,
        "execution_id": approval.execution_id,
        "node_id": approval.node_id,
        "status": DeliveryStatus.PENDING,
        "url": approval.callback_url,
        "target": target_of(approval.callback_url or ""),
        "secret": approval.callback_secret,
        "created_at": _NOW,
        "told_at": _NOW,
        "due_at": _NOW,
    }
    again = {
        "status": DeliveryStatus.PENDING,
        "url": values["url"],
        "target": values["target"],
        "secret": values["secret"],
        "fence": deliveries.c.fence + 1,
        "attempts": 0,
        "lease_until": None,
        "writing_fence": None,
        "settled_at": None,
        # Counted from the last try, not from the last telling: whoever asks again all the time is told all the same.
        "due_at": sa.func.greatest(_NOW, deliveries.c.last_attempt_at + TOLD_AGAIN_EVERY),
        "told_at": _NOW,
    }
    await conn.run(upsert(deliveries).values(values).on_conflict_do_update(index_elements=["approval_id"], set_=again))
    conn.changes.due = True


async def told(conn: Connection, approval_id: str) -> bool:
    """Whether an approval's agent knows its end by callback: delivered, or a try is being written to it now."""
    writing = sa.and_(_PENDING, deliveries.c.writing_fence == deliveries.c.fence, deliveries.c.lease_until > _NOW)
    statement = sa.select(sa.literal(1)).where(
        deliveries.c.approval_id == approval_id, sa.or_(deliveries.c.status == DeliveryStatus.DELIVERED, writing)
    )
    return await conn.row(statement) is not None


async def make_obsolete(conn: Connection, execution_id: str) -> list[str]:
    """End the undelivered rows of an execution that reported its own end, and return the approvals they told of."""
    statement = (
        sa.update(deliveries)
        .where(deliveries.c.execution_id == execution_id, _PENDING)
        .values(status=DeliveryStatus.OBSOLETE, settled_at=_NOW, fence=deliveries.c.fence + 1, lease_until=None)
        .returning(deliveries.c.approval_id)
    )
    return [row.approval_id for row in await conn.rows(statement)]


async def redrive(conn: Connection, delivery_id: str) -> Listed | None:
    """Make a pending or dead delivery due now, all its tries before it; None when there is none in such a state."""
    statement = (
        sa.update(deliveries)
        .where(
            deliveries.c.delivery_id == delivery_id,
            deliveries.c.status.in_([DeliveryStatus.PENDING, DeliveryStatus.DEAD]),
        )
        .values(
            status=DeliveryStatus.PENDING,
            fence=deliveries.c.fence + 1,
            attempts=0,
            lease_until=None,
            writing_fence=None,
            settled_at=None,
            due_at=_NOW,
            told_at=_NOW,
        )
        .returning(*columns(deliveries, Listed))
    )
    row = await conn.row(statement)
    conn.changes.due = conn.changes.due or row is not None
    return to_struct(row, Listed) if row else None


async def get(conn: Connection, delivery_id: str) -> Listed | None:
    """One delivery."""
    row = await conn.row(sa.select(*columns(deliveries, Listed)).where(deliveries.c.delivery_id == delivery_id))
    return to_struct(row, Listed) if row else None


async def next_due_in(conn: Connection) -> float | None:
    """Seconds until the next delivery that nobody holds is due, below zero when overdue; None when there is none."""
    soonest = (
        sa.select(deliveries.c.due_at).where(_PENDING, _FREE).order_by(deliveries.c.due_at).limit(1).scalar_subquery()
    )
    row = await conn.row(sa.select(sa.func.extract("epoch", soonest - _NOW).label("seconds")))
    return None if row is None or row.seconds is None else float(row.seconds)


async def page(conn: Connection, status: DeliveryStatus | None, after: Place | None, limit: int) -> list[Listed]:
    """One page of deliveries, newest first."""
    key = sa.tuple_(deliveries.c.created_at, deliveries.c.delivery_id)
    statement = sa.select(*columns(deliveries, Listed)).limit(limit)
    if status is not None:
        statement = statement.where(deliveries.c.status == status)
    if after is not None:
        statement = statement.where(key < sa.tuple_(sa.literal(after.at), sa.literal(after.id)))
    rows = await conn.rows(statement.order_by(deliveries.c.created_at.desc(), deliveries.c.delivery_id.desc()))
    return [to_struct(row, Listed) for row in rows]
