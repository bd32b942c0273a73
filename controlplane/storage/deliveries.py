"""Deliveries as they are remembered: told again, ended, re-driven, listed. Each change outdoes a try under way."""

from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.approvals import Approval
from controlplane.domain.deliveries import TOLD_AGAIN_EVERY, DeliveryStatus, target_of
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.tables import DELIVERY_PENDING, deliveries

_NOW = sa.func.clock_timestamp()


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
    resting: bool


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
        "resting": False,
        # Counted from the last try, not from the last telling: whoever asks again all the time is told all the same.
        "due_at": sa.func.greatest(_NOW, deliveries.c.last_attempt_at + TOLD_AGAIN_EVERY),
        "told_at": _NOW,
    }
    await conn.run(upsert(deliveries).values(values).on_conflict_do_update(index_elements=["approval_id"], set_=again))
    conn.changes.due = True


async def make_obsolete(conn: Connection, execution_id: str) -> list[str]:
    """End the undelivered rows of an execution that reported its own end, and return the approvals they told of.

    The fence stays: an agent that was told may report its end before the try that told it is settled, and then that
    try is the truth.
    """
    # Locked in order of their ids, as the dispatcher does when it settles several.
    mine = (
        sa.select(deliveries.c.delivery_id)
        .where(deliveries.c.execution_id == execution_id, DELIVERY_PENDING)
        .order_by(deliveries.c.delivery_id)
        .with_for_update()
        .cte("mine")
        .prefix_with("MATERIALIZED")
    )
    statement = (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == mine.c.delivery_id)
        .values(status=DeliveryStatus.OBSOLETE, settled_at=_NOW, lease_until=None, resting=False)
        .returning(deliveries.c.approval_id)
    )
    return [row.approval_id for row in await conn.rows(statement)]


async def any_pending(conn: Connection, execution_id: str) -> bool:
    """Whether an agent is still to be told of an answer to this execution."""
    statement = sa.select(sa.literal(1)).where(deliveries.c.execution_id == execution_id, DELIVERY_PENDING).limit(1)
    return await conn.row(statement) is not None


async def redrive(conn: Connection, delivery_id: str) -> tuple[DeliveryStatus, Listed] | None:
    """Make a pending or dead delivery due now, all its tries before it, and say which of both it was; None: neither."""
    mine = (
        sa.select(deliveries.c.delivery_id, deliveries.c.status)
        .where(
            deliveries.c.delivery_id == delivery_id,
            deliveries.c.status.in_([DeliveryStatus.PENDING, DeliveryStatus.DEAD]),
        )
        .with_for_update()
        .cte("mine")
        .prefix_with("MATERIALIZED")
    )
    statement = (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == mine.c.delivery_id)
        .values(
            status=DeliveryStatus.PENDING,
            fence=deliveries.c.fence + 1,
            attempts=0,
            lease_until=None,
            writing_fence=None,
            settled_at=None,
            resting=False,
            due_at=_NOW,
            told_at=_NOW,
        )
        .returning(*columns(deliveries, Listed), mine.c.status.label("was"))
    )
    row = await conn.row(statement)
    conn.changes.due = conn.changes.due or row is not None
    return (DeliveryStatus(row.was), to_struct(row, Listed)) if row else None


async def get(conn: Connection, delivery_id: str) -> Listed | None:
    """One delivery."""
    row = await conn.row(sa.select(*columns(deliveries, Listed)).where(deliveries.c.delivery_id == delivery_id))
    return to_struct(row, Listed) if row else None


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
