"""Instances as they are remembered: come, renewed, gone, and at last forgotten.

Lock order: a node's row, then its instances, then deliveries; executions are never locked after an instance. What
several processes may do at once, ending what is silent and forgetting what is old, takes the rows that are free.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.nodes import GRACE_SECONDS, KEPT_AFTER, GoneReason, Instance, InstanceStatus, Registration
from controlplane.storage.addresses import lies_under, plain
from controlplane.storage.clock import MOMENT
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import APPROVAL_PENDING, DELIVERY_PENDING, approvals, deliveries, executions
from controlplane.storage.tables import instances as rows

_NOW = sa.func.clock_timestamp()
_INSTANCE = columns(rows, Instance)
_THERE = rows.c.status != sa.literal_column(f"'{InstanceStatus.GONE}'")


class Present(Instance, frozen=True, kw_only=True):
    """An instance with the database's clock beside it."""

    now: datetime


async def lock_met(conn: Connection, wanted: Registration) -> tuple[Instance, ...]:
    """Lock what a registration meets: the instance of its id, gone or not, and those at its address."""
    at_address = sa.and_(_THERE, rows.c.base_url == wanted.base_url)
    statement = (
        sa.select(*_INSTANCE)
        .where(rows.c.node_id == wanted.node_id, sa.or_(rows.c.instance_id == wanted.instance_id, at_address))
        .order_by(rows.c.instance_id)
        .with_for_update()
    )
    return tuple(to_struct(row, Instance) for row in await conn.rows(statement))


async def put(conn: Connection, instance: Instance, *, callbacks_left: bool = False) -> bool:
    """Write an instance, new or again; False when another node has one of this id."""
    values = {field: getattr(instance, field) for field in Instance.__struct_fields__}
    values |= {"reasoners": list(instance.reasoners), "callbacks_left": callbacks_left}
    statement = (
        upsert(rows)
        .values(values)
        .on_conflict_do_update(index_elements=["instance_id"], set_=values, where=rows.c.node_id == instance.node_id)
    )
    return await conn.run(statement) == 1


async def end(conn: Connection, instance_ids: Sequence[str], reason: GoneReason) -> list[Instance]:
    """Make instances gone that are there, and return them; callbacks may be left behind, save by a replaced one."""
    binds = {"ids": list(instance_ids), "reason": reason, "left": reason is not GoneReason.REPLACED}
    return [to_struct(row, Instance) for row in await conn.rows(_END, binds)]


async def expire(conn: Connection, *, watched_seconds: float, limit: int) -> list[Instance]:
    """Make instances gone whose lease has passed, if they were watched for as long as the grace or their lease is."""
    binds = {"watched": watched_seconds, "limit": limit, "reason": GoneReason.LEASE, "left": True}
    return [to_struct(row, Instance) for row in await conn.rows(_EXPIRE, binds)]


async def renew(conn: Connection, after: Instance) -> bool:
    """Write a sign of life, its lease from this moment on; False when the instance is gone meanwhile."""
    binds = {"id": after.instance_id, "to": after.status, "seconds": after.lease_seconds}
    return await conn.run(_RENEW, binds) == 1


async def present(conn: Connection, node_id: str, instance_id: str | None, *, oldest: bool = False) -> Present | None:
    """An instance that is there, with the clock; without an id the node's newest, or its oldest."""
    if instance_id is not None:
        row = await conn.row(_ONE, {"node_id": node_id, "id": instance_id})
    else:
        row = await conn.row(_OLDEST if oldest else _NEWEST, {"node_id": node_id})
    return to_struct(row, Present) if row else None


async def known(conn: Connection, node_id: str, instance_id: str | None) -> bool:
    """Whether a node has, or had of late, an instance: this one where one is named."""
    statement = sa.select(sa.literal(1)).where(rows.c.node_id == node_id).limit(1)
    if instance_id is not None:
        statement = statement.where(rows.c.instance_id == instance_id)
    return await conn.row(statement) is not None


async def forget(conn: Connection, limit: int) -> int:
    """Delete instances that are gone for long and that nothing is held by or points to; return how many."""
    return await conn.run(_FORGET, {"limit": limit, "kept": KEPT_AFTER})


def _ending(which: sa.CTE) -> sa.Executable:
    return (
        sa.update(rows)
        .where(rows.c.instance_id == which.c.instance_id)
        .values(
            status=InstanceStatus.GONE,
            gone_reason=sa.bindparam("reason"),
            gone_at=_NOW,
            callbacks_left=sa.bindparam("left", type_=sa.Boolean),
        )
        .returning(*_INSTANCE)
    )


def _locked(*where: sa.ColumnElement[bool], skip: bool) -> sa.Select[Any]:
    return sa.select(rows.c.instance_id).where(*where).with_for_update(skip_locked=skip, of=rows)


def _materialized(which: sa.Select[Any]) -> sa.CTE:
    return which.cte("which").prefix_with("MATERIALIZED")


def _presents(*where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(*_INSTANCE, _NOW.label("now")).where(rows.c.node_id == sa.bindparam("node_id"), _THERE, *where)


def _forgotten() -> sa.CTE:
    """What is gone for long; what waits for the node's return to follow it needs the address that it had."""
    held = sa.exists().where(
        executions.c.instance_id == rows.c.instance_id,
        sa.or_(executions.c.ended_at.is_(None), executions.c.outcome_pending),
    )
    rests = sa.exists().where(
        deliveries.c.node_id == rows.c.node_id,
        DELIVERY_PENDING,
        deliveries.c.resting,
        lies_under(plain(deliveries.c.url), rows.c.base_url),
    )
    calls = sa.exists().where(
        approvals.c.node_id == rows.c.node_id,
        APPROVAL_PENDING,
        approvals.c.callback_url.is_not(None),
        lies_under(plain(approvals.c.callback_url), rows.c.base_url),
    )
    old = rows.c.gone_at < MOMENT - sa.bindparam("kept", type_=sa.Interval)
    unneeded = sa.or_(~rows.c.callbacks_left, ~calls)
    return _materialized(_locked(~_THERE, old, ~held, ~rests, unneeded, skip=True).limit(sa.bindparam("limit")))


# Built once: building one of these costs more than running it.
_END = Statement(_ending(_materialized(_locked(rows.c.instance_id == sa.any_(bound_texts("ids")), _THERE, skip=False))))
_EXPIRE = Statement(
    _ending(
        _materialized(
            _locked(
                _THERE,
                rows.c.lease_until <= MOMENT,
                sa.func.least(rows.c.lease_seconds, GRACE_SECONDS) <= sa.bindparam("watched", type_=sa.Double),
                skip=True,
            )
            .order_by(rows.c.lease_until)
            .limit(sa.bindparam("limit"))
        )
    )
)
_RENEW = Statement(
    sa.update(rows)
    .where(rows.c.instance_id == sa.bindparam("id"), _THERE)
    .values(
        status=sa.bindparam("to"),
        lease_seconds=sa.bindparam("seconds", type_=sa.Double),
        lease_until=_NOW + sa.func.make_interval(0, 0, 0, 0, 0, 0, sa.bindparam("seconds", type_=sa.Double)),
        seen_at=_NOW,
    )
)
_ONE = Statement(_presents(rows.c.instance_id == sa.bindparam("id")))
_NEWEST = Statement(_presents().order_by(rows.c.registered_at.desc(), rows.c.instance_id.desc()).limit(1))
_OLDEST = Statement(_presents().order_by(rows.c.registered_at, rows.c.instance_id).limit(1))
_doomed = _forgotten()
_FORGET = Statement(sa.delete(rows).where(rows.c.instance_id == _doomed.c.instance_id))
