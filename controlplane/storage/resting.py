"""Deliveries rest while their agent is away, and move to where it is once it is back.

A URL is its instance's whose base address is the longest that it lies under; of several at one address one that is
there goes before those that are gone.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.deliveries import target_of
from controlplane.domain.nodes import Instance
from controlplane.storage.addresses import GONE, home_of, lies_under, plain, plainly
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import DELIVERY_PENDING, deliveries, instances, nodes

# At once, so that a transaction ends in time whoever is gone. What is left over is tried, and rests when that fails.
MOST_AT_ONCE = 2000

_NOW = sa.func.clock_timestamp()


class Home(Struct, frozen=True):
    """A node with deliveries that rest, and the address of its newest live instance."""

    node_id: str
    base_url: str


class Resting(Struct, frozen=True):
    """A delivery that rests, with the base address that its URL lies under; None: that is forgotten, or there again."""

    delivery_id: str
    approval_id: str
    execution_id: str
    node_id: str
    url: str
    left_url: str | None


async def rest(conn: Connection, gone: Sequence[Instance]) -> int:
    """Let undelivered rows rest that are these instances', which are gone; a try in flight can no longer settle."""
    if not gone:
        return 0
    ids, nodes_of = [each.instance_id for each in gone], list({each.node_id for each in gone})
    return await conn.run(_REST, {"ids": ids, "nodes": nodes_of, "limit": MOST_AT_ONCE})


async def rest_tried(conn: Connection, delivery_ids: Sequence[str]) -> int:
    """Let deliveries rest whose try has failed, of instances that are gone; their rows are locked."""
    return await conn.run(_REST_TRIED, {"ids": list(delivery_ids), "limit": len(delivery_ids)}) if delivery_ids else 0


async def send_again(conn: Connection, node_id: str, base_url: str) -> int:
    """Make due now what is undelivered under an address that another process has come to."""
    renewed = await conn.run(_SEND_AGAIN, {"node_id": node_id, "base": base_url, "limit": MOST_AT_ONCE})
    conn.changes.due = conn.changes.due or bool(renewed)
    return renewed


async def homes(conn: Connection, limit: int) -> list[Home]:
    """Nodes that have a live instance and deliveries that rest."""
    return [to_struct(row, Home) for row in await conn.rows(_HOMES, {"limit": limit})]


async def lock_resting(conn: Connection, node_id: str, limit: int) -> list[Resting]:
    """Lock deliveries of a node that rest, without those that others hold."""
    found = await conn.rows(_LOCK_RESTING, {"node_id": node_id, "limit": limit})
    return [to_struct(row, Resting) for row in found]


async def move(conn: Connection, urls: dict[str, str]) -> None:
    """Send locked deliveries to these URLs, by their ids: due now, with all their tries before them."""
    await conn.run(
        _MOVE, {"ids": list(urls), "urls": list(urls.values()), "targets": [target_of(u) for u in urls.values()]}
    )
    conn.changes.due = conn.changes.due or bool(urls)


_url = plainly(deliveries.c.url)


def _owner() -> sa.FromClause:
    """The instance that a delivery's URL is of."""
    return (
        sa.select(instances.c.base_url, instances.c.status)
        .where(instances.c.node_id == deliveries.c.node_id, lies_under(_url.c.plain, instances.c.base_url))
        .order_by(sa.func.length(instances.c.base_url).desc(), instances.c.status == GONE)
        .limit(1)
        .lateral("owner")
    )


def _resting(*where: sa.ColumnElement[bool]) -> sa.Executable:
    owner = _owner()
    # Locked in order of their ids, as everywhere where several of one execution may be taken.
    mine = (
        sa.select(deliveries.c.delivery_id)
        .select_from(deliveries.join(_url, sa.true()).join(owner, sa.true()))
        .where(DELIVERY_PENDING, ~deliveries.c.resting, owner.c.status == GONE, *where)
        .order_by(deliveries.c.delivery_id)
        .limit(sa.bindparam("limit"))
        .with_for_update(of=deliveries)
        .cte("mine")
        .prefix_with("MATERIALIZED")
    )
    return (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == mine.c.delivery_id)
        .values(resting=sa.true(), fence=deliveries.c.fence + 1, lease_until=None, writing_fence=None)
    )


def _just_gone() -> sa.ColumnElement[bool]:
    gone = instances.alias("gone")
    under = sa.exists().where(
        gone.c.instance_id == sa.any_(bound_texts("ids")),
        gone.c.node_id == deliveries.c.node_id,
        lies_under(_url.c.plain, gone.c.base_url),
    )
    return sa.and_(deliveries.c.node_id == sa.any_(bound_texts("nodes")), under)


def _send_again() -> sa.Executable:
    mine = (
        sa.select(deliveries.c.delivery_id)
        .where(
            DELIVERY_PENDING,
            ~deliveries.c.resting,
            deliveries.c.node_id == sa.bindparam("node_id"),
            lies_under(plain(deliveries.c.url), sa.bindparam("base", type_=sa.Text)),
        )
        .order_by(deliveries.c.delivery_id)
        .limit(sa.bindparam("limit"))
        .with_for_update()
        .cte("mine")
        .prefix_with("MATERIALIZED")
    )
    return (
        sa.update(deliveries)
        .where(deliveries.c.delivery_id == mine.c.delivery_id)
        .values(
            fence=deliveries.c.fence + 1,
            attempts=0,
            lease_until=None,
            writing_fence=None,
            due_at=_NOW,
            told_at=_NOW,
        )
    )


def _homes() -> sa.Executable:
    home = home_of(nodes.c.node_id)
    rests = sa.exists().where(deliveries.c.node_id == nodes.c.node_id, DELIVERY_PENDING, deliveries.c.resting)
    return (
        sa.select(nodes.c.node_id, home.c.base_url)
        .select_from(nodes.join(home, sa.true()))
        .where(rests)
        .limit(sa.bindparam("limit"))
    )


def _lock_resting() -> sa.Executable:
    owner = _owner()
    left_url = sa.case((owner.c.status == GONE, owner.c.base_url))
    return (
        sa.select(*columns(deliveries, Resting), left_url.label("left_url"))
        .select_from(deliveries.join(_url, sa.true()).outerjoin(owner, sa.true()))
        .where(deliveries.c.node_id == sa.bindparam("node_id"), DELIVERY_PENDING, deliveries.c.resting)
        .limit(sa.bindparam("limit"))
        .with_for_update(of=deliveries, skip_locked=True)
    )


# Built once: building one of these costs more than running it.
_REST = Statement(_resting(_just_gone()))
_REST_TRIED = Statement(_resting(deliveries.c.delivery_id == sa.any_(bound_texts("ids"))))
_SEND_AGAIN = Statement(_send_again())
_HOMES = Statement(_homes())
_LOCK_RESTING = Statement(_lock_resting())
_MOVE = Statement(
    sa.text("""
UPDATE deliveries d
SET url = v.url, target = v.target, resting = false, fence = d.fence + 1, attempts = 0, lease_until = NULL,
    writing_fence = NULL, told_at = clock_timestamp(), due_at = clock_timestamp()
FROM unnest(CAST(:ids AS text[]), CAST(:urls AS text[]), CAST(:targets AS text[])) AS v(delivery_id, url, target)
WHERE d.delivery_id = v.delivery_id
""")
)
