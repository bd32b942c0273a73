"""The outbox: claim what is due, settle what was tried. Only the holder of a delivery's newest fence writes it."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.approvals import Approval
from controlplane.domain.deliveries import CLAIMS_PER_TARGET, LEASE, Claimed, DeliveryStatus, Verdict
from controlplane.storage.allowances import allowed_to
from controlplane.storage.clock import MOMENT
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import DELIVERY_PENDING, approvals, deliveries

# How many due rows are looked at for each that may be taken, so that one target's crowd does not hide the others.
LOOKED_AT = 4

_NOW = sa.func.clock_timestamp()
_FREE = sa.or_(deliveries.c.lease_until.is_(None), deliveries.c.lease_until <= MOMENT)
_AWAKE = sa.and_(DELIVERY_PENDING, ~deliveries.c.resting)


class Tried(Struct, frozen=True):
    """What a try came to: the claim that it was made under, what is decided, and the reply's status."""

    claimed: Claimed
    verdict: Verdict
    last_status: int | None = None


async def claim(conn: Connection, *, limit: int, held: Mapping[str, int]) -> list[Claimed]:
    """Take deliveries that are due, under a lease and a new fence; a few for each target.

    Args:
        conn: the open transaction.
        limit: how many at most.
        held: how many of each target's deliveries the caller has in hand, whose room is that much smaller.
    """
    binds = {"limit": limit, "window": limit * LOOKED_AT, "targets": list(held), "counts": list(held.values())}
    return [_claimed(row) for row in await conn.rows(_CLAIM, binds)]


async def mark_writing(conn: Connection, delivery_id: str, fence: int) -> bool:
    """Keep that this try's request is about to be written: from now on its agent may know. False: taken over."""
    return await conn.run(_MARK_WRITING, {"id": delivery_id, "holds": fence}) == 1


async def settle(conn: Connection, tried: Sequence[Tried]) -> dict[str, DeliveryStatus]:
    """Write what tries came to, and return what the deliveries were that were still ours; others are left alone.

    A delivery that became obsolete meanwhile is no longer tried, but one that did arrive is `delivered` all the same.
    """
    binds = {
        "ids": [one.claimed.delivery_id for one in tried],
        "fences": [one.claimed.fence for one in tried],
        "statuses": [one.verdict.status for one in tried],
        "retries": [one.verdict.retry_in for one in tried],
        "codes": [one.last_status for one in tried],
        "errors": [one.verdict.error for one in tried],
    }
    return {row.delivery_id: DeliveryStatus(row.was) for row in await conn.rows(_SETTLE, binds)}


async def told(conn: Connection, approval_id: str) -> bool:
    """Whether an approval's agent knows its end by callback: delivered, or a try is being written to it now."""
    writing = sa.and_(
        DELIVERY_PENDING, deliveries.c.writing_fence == deliveries.c.fence, deliveries.c.lease_until > _NOW
    )
    statement = sa.select(sa.literal(1)).where(
        deliveries.c.approval_id == approval_id, sa.or_(deliveries.c.status == DeliveryStatus.DELIVERED, writing)
    )
    return await conn.row(statement) is not None


async def next_due_in(conn: Connection) -> float | None:
    """Seconds until the next delivery that nobody holds is due, below zero when overdue; None when there is none."""
    row = await conn.row(_NEXT_DUE_IN)
    return None if row is None or row.seconds is None else float(row.seconds)


def _claimed(row: sa.Row[Any]) -> Claimed:
    own = {name: getattr(row, name) for name in Claimed.__struct_fields__ if name not in {"approval", "allow"}}
    return Claimed(**own, approval=to_struct(row, Approval), allow=tuple(row.allow))


def _with_room() -> sa.Select[Any]:
    """What is due, as many for each target as the caller has room for."""
    counts: Any = sa.ARRAY(sa.Integer)
    unnested = sa.func.unnest(bound_texts("targets"), sa.bindparam("counts", type_=counts))
    held = unnested.table_valued(
        sa.column("target", sa.Text), sa.column("held", sa.Integer), name="held"
    ).render_derived()
    in_hand = sa.func.coalesce(held.c.held, 0)
    due = (
        sa.select(deliveries.c.delivery_id, deliveries.c.target, deliveries.c.due_at, in_hand.label("in_hand"))
        .select_from(deliveries.outerjoin(held, held.c.target == deliveries.c.target))
        .where(_AWAKE, deliveries.c.due_at <= MOMENT, _FREE, in_hand < CLAIMS_PER_TARGET)
        .order_by(deliveries.c.due_at)
        .limit(sa.bindparam("window"))
        .subquery()
    )
    place = sa.func.row_number().over(partition_by=due.c.target, order_by=due.c.due_at) + due.c.in_hand
    ranked = sa.select(due.c.delivery_id, place.label("place")).subquery()
    return sa.select(ranked.c.delivery_id).where(ranked.c.place <= CLAIMS_PER_TARGET)


def _claim_statement() -> sa.Executable:
    locked = (
        sa.select(deliveries.c.delivery_id)
        .where(deliveries.c.delivery_id.in_(_with_room()), _AWAKE, deliveries.c.due_at <= MOMENT, _FREE)
        .limit(sa.bindparam("limit"))
        .with_for_update(skip_locked=True)
        .cte("locked")
        .prefix_with("MATERIALIZED")
    )
    mine = [deliveries.c[n] for n in ("delivery_id", "url", "target", "secret", "attempts", "fence", "told_at")]
    return (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == locked.c.delivery_id, deliveries.c.approval_id == approvals.c.approval_id)
        .values(
            fence=deliveries.c.fence + 1,
            attempts=deliveries.c.attempts + 1,
            lease_until=_NOW + LEASE,
            last_attempt_at=_NOW,
        )
        .returning(
            *mine,
            _NOW.label("now"),
            allowed_to(approvals.c.node_id).label("allow"),
            *columns(approvals, Approval),
        )
    )


# Built once: building one of these costs more than running it.
_CLAIM = Statement(_claim_statement())
_MARK_WRITING = Statement(
    sa.update(deliveries)
    .where(
        deliveries.c.delivery_id == sa.bindparam("id"),
        deliveries.c.fence == sa.bindparam("holds"),
        DELIVERY_PENDING,
    )
    .values(writing_fence=sa.bindparam("holds"))
)
_NEXT_DUE_IN = Statement(
    sa.select(
        sa.func.extract(
            "epoch",
            sa.select(deliveries.c.due_at).where(_AWAKE, _FREE).order_by(deliveries.c.due_at).limit(1).scalar_subquery()
            - _NOW,
        ).label("seconds")
    )
)
# Rows are locked in order of their ids, as everywhere where several of one execution may be taken.
_SETTLE = Statement(
    sa.text("""
WITH tried AS (
    SELECT * FROM unnest(CAST(:ids AS text[]), CAST(:fences AS bigint[]), CAST(:statuses AS text[]),
                         CAST(:retries AS interval[]), CAST(:codes AS int[]), CAST(:errors AS text[]))
        AS t(delivery_id, fence, status, retry_in, last_status, last_error)
), locked AS MATERIALIZED (
    SELECT d.delivery_id, d.status AS was FROM deliveries d
    WHERE d.delivery_id = ANY(CAST(:ids AS text[])) AND d.status IN ('pending', 'obsolete')
    ORDER BY d.delivery_id FOR UPDATE
)
UPDATE deliveries d
SET status = t.status, lease_until = NULL, writing_fence = NULL, last_status = t.last_status,
    last_error = t.last_error,
    due_at = CASE WHEN t.retry_in IS NULL THEN d.due_at ELSE clock_timestamp() + t.retry_in END,
    settled_at = CASE WHEN t.status = 'pending' THEN NULL ELSE clock_timestamp() END
FROM locked JOIN tried t USING (delivery_id)
WHERE d.delivery_id = locked.delivery_id AND d.fence = t.fence
  AND (d.status = 'pending' OR (d.status = 'obsolete' AND t.status = 'delivered'))
RETURNING d.delivery_id, locked.was
""")
)
