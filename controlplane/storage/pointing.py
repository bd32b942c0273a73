"""Pending approvals whose callback points to an instance that is gone: found, and given the address of another."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from controlplane.storage.addresses import GONE, home_of, lies_under, plain
from controlplane.storage.engine import Connection
from controlplane.storage.rows import to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import APPROVAL_PENDING, approvals, executions, instances


class Left(Struct, frozen=True):
    """An instance that is gone and that pending approvals may point to, with the address that they move to."""

    instance_id: str
    node_id: str
    base_url: str
    home_url: str


class Pointing(Struct, frozen=True):
    """A pending approval whose callback lies under an address that its agent has left."""

    approval_id: str
    execution_id: str
    approval_request_id: str
    node_id: str
    callback_url: str


async def left(conn: Connection, limit: int) -> list[Left]:
    """Instances that pending approvals may still point to and whose node is there again, the longest gone first."""
    return [to_struct(row, Left) for row in await conn.rows(_LEFT, {"limit": limit})]


async def lock_pointing(conn: Connection, one: Left, limit: int) -> list[Pointing]:
    """Pending approvals that point to it, their executions locked, without those that others hold."""
    return [to_struct(row, Pointing) for row in await conn.rows(_LOCK_POINTING, _binds(one) | {"limit": limit})]


async def repoint(conn: Connection, moves: Sequence[tuple[Pointing, str]]) -> set[str]:
    """Give approvals these callback URLs, and return those that were as they had been read."""
    binds = {
        "ids": [was.approval_id for was, _ in moves],
        "was": [was.callback_url for was, _ in moves],
        "urls": [url for _, url in moves],
    }
    return {row.approval_id for row in await conn.rows(_REPOINT, binds)} if moves else set()


async def close(conn: Connection, one: Left) -> bool:
    """Keep that nothing points to an instance any more; False when something does, or the row is held."""
    return await conn.run(_CLOSE, _binds(one) | {"id": one.instance_id}) == 1


def _binds(one: Left) -> dict[str, Any]:
    # A cheap look at the beginning spares the costly one for nearly all that points elsewhere.
    origin = "/".join(one.base_url.split("/", 3)[:3])
    return {"node_id": one.node_id, "base": one.base_url, "origin": origin}


def _points() -> sa.ColumnElement[bool]:
    """Whether a pending approval points to an address that nobody is at, and to no other one below it."""
    base = sa.bindparam("base", type_=sa.Text)
    other = instances.alias("other")
    nearer = sa.and_(
        sa.func.length(other.c.base_url) > sa.func.length(base),
        lies_under(plain(approvals.c.callback_url), other.c.base_url),
    )
    return sa.and_(
        approvals.c.node_id == sa.bindparam("node_id"),
        APPROVAL_PENDING,
        approvals.c.callback_url.is_not(None),
        sa.func.starts_with(sa.func.lower(approvals.c.callback_url), sa.bindparam("origin", type_=sa.Text)),
        lies_under(plain(approvals.c.callback_url), base),
        ~sa.exists().where(
            other.c.node_id == sa.bindparam("node_id"),
            sa.or_(nearer, sa.and_(other.c.base_url == base, other.c.status != GONE)),
        ),
    )


def _left() -> sa.Executable:
    home = home_of(instances.c.node_id)
    return (
        sa.select(instances.c.instance_id, instances.c.node_id, instances.c.base_url, home.c.base_url.label("home_url"))
        .select_from(instances.join(home, sa.true()))
        .where(instances.c.callbacks_left)
        .order_by(instances.c.gone_at)
        .limit(sa.bindparam("limit"))
    )


def _close() -> sa.Executable:
    free = (
        sa.select(instances.c.instance_id)
        .where(instances.c.instance_id == sa.bindparam("id"), instances.c.base_url == sa.bindparam("base"))
        .with_for_update(skip_locked=True)
        .cte("free")
        .prefix_with("MATERIALIZED")
    )
    return (
        sa.update(instances)
        .where(instances.c.instance_id == free.c.instance_id, ~sa.exists().where(_points()))
        .values(callbacks_left=sa.false())
    )


# Built once: building one of these costs more than running it.
_LEFT = Statement(_left())
_LOCK_POINTING = Statement(
    sa.select(*(approvals.c[name] for name in Pointing.__struct_fields__))
    .select_from(approvals.join(executions, approvals.c.execution_id == executions.c.execution_id))
    .where(_points())
    .limit(sa.bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=executions)
)
_REPOINT = Statement(
    sa.text("""
UPDATE approvals a
SET callback_url = v.url
FROM unnest(CAST(:ids AS text[]), CAST(:was AS text[]), CAST(:urls AS text[])) AS v(approval_id, was, url)
WHERE a.approval_id = v.approval_id AND a.status = 'pending' AND a.callback_url = v.was
RETURNING a.approval_id
""")
)
_CLOSE = Statement(_close())
