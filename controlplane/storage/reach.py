"""What a caller may see: what lies beyond their reach is not found, as if it were not there."""

from typing import Any

import sqlalchemy as sa

from controlplane.storage.access_tables import node_owners
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, texts
from controlplane.storage.statement import Statement


async def within(conn: Connection, row: Any | None) -> Any | None:
    """A row of a run, or of something that belongs to one, if it is in the caller's reach."""
    if row is None or conn.reach.covers(row.node_id, getattr(row, "started_by", None)):
        return row
    if conn.reach.owner is None or row.node_id is None:
        return None
    # Perhaps the node became the caller's own since their key was read.
    owns = await conn.row(_OWNS, {"node_id": row.node_id, "key_id": conn.reach.owner})
    return row if owns is not None else None


def in_reach(
    conn: Connection, node_id: sa.ColumnElement[Any], started_by: sa.ColumnElement[Any] | None = None
) -> sa.ColumnElement[bool]:
    """The condition that a list adds: rows of the caller's nodes, and runs that they started."""
    reach = conn.reach
    if reach.nodes is None:
        return sa.true()
    theirs = [node_id == sa.any_(texts(sorted(reach.nodes)))]
    if reach.owner is not None:
        theirs.append(node_id.in_(sa.select(node_owners.c.node_id).where(node_owners.c.key_id == reach.owner)))
    if started_by is not None and reach.starter is not None:
        theirs.append(started_by == reach.starter)
    return sa.or_(*theirs)


def reachable(node_id: sa.ColumnElement[Any], started_by: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """As `in_reach`, for a statement that is built once; its values are `limits`."""
    owner = sa.bindparam("reach_owner", type_=sa.Text)
    return sa.or_(
        sa.bindparam("reach_everything", type_=sa.Boolean),
        node_id == sa.any_(bound_texts("reach_nodes")),
        node_id.in_(sa.select(node_owners.c.node_id).where(node_owners.c.key_id == owner)),
        started_by == sa.bindparam("reach_starter", type_=sa.Text),
    )


def limits(conn: Connection) -> dict[str, Any]:
    """The values of `reachable` for a transaction's caller."""
    reach = conn.reach
    return {
        "reach_everything": reach.nodes is None,
        "reach_nodes": sorted(reach.nodes or ()),
        "reach_owner": reach.owner,
        "reach_starter": reach.starter,
    }


_OWNS = Statement(
    sa.select(sa.literal(1)).where(
        node_owners.c.node_id == sa.bindparam("node_id"), node_owners.c.key_id == sa.bindparam("key_id")
    )
)
