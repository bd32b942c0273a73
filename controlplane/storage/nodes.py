"""Nodes as they are remembered: what each registered last, looked up and listed with its instances."""

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.nodes import Instance, InstanceStatus, Node, Reasoner, Registration
from controlplane.storage.access_tables import node_owners
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from controlplane.storage.reach import in_reach, within
from controlplane.storage.rows import columns, texts, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import instances, nodes

_NOW = sa.func.clock_timestamp()
_INSTANCE = columns(instances, Instance)
_OWNER = sa.select(node_owners.c.key_id).where(node_owners.c.node_id == nodes.c.node_id).scalar_subquery()
_NODE = [*columns(nodes, Node), _OWNER.label("owner")]
_THERE = instances.c.status != InstanceStatus.GONE
# A page of nodes could else weigh as much as all schemas of a thousand reasoners.
_SHORT = sa.literal_column(
    "(SELECT coalesce(jsonb_agg(value - 'input_schema'), '[]') FROM jsonb_array_elements(nodes.reasoners))", JSONB
)
_NEWEST_FIRST = (instances.c.registered_at.desc(), instances.c.instance_id.desc())


async def keep(conn: Connection, wanted: Registration) -> None:
    """Keep a node as it registers; its row stays locked, so that registrations of one node take turns."""
    values = {
        "node_id": wanted.node_id,
        "version": wanted.version,
        "reasoners": msgspec.to_builtins(wanted.reasoners),
        "skills": list(wanted.skills),
        "max_concurrent": wanted.max_concurrent,
        "registered_at": _NOW,
        "updated_at": _NOW,
    }
    again = {name: value for name, value in values.items() if name not in {"node_id", "registered_at"}}
    await conn.run(upsert(nodes).values(values).on_conflict_do_update(index_elements=["node_id"], set_=again))


async def get(conn: Connection, node_id: str) -> Node | None:
    """One node."""
    row = await within(conn, await conn.row(sa.select(*_NODE).where(nodes.c.node_id == node_id)))
    return to_struct(row, Node) if row else None


async def page(conn: Connection, after: Place | None, limit: int) -> list[Node]:
    """One page of nodes, the ones that registered first of all last; their reasoners without schemas."""
    key = sa.tuple_(nodes.c.registered_at, nodes.c.node_id)
    short = [_SHORT.label(each.name) if each is nodes.c.reasoners else each for each in _NODE]
    statement = sa.select(*short).order_by(nodes.c.registered_at.desc(), nodes.c.node_id.desc()).limit(limit)
    statement = statement.where(in_reach(conn, nodes.c.node_id))
    if after is not None:
        statement = statement.where(key < sa.tuple_(sa.literal(after.at), sa.literal(after.id)))
    return [to_struct(row, Node) for row in await conn.rows(statement)]


async def reasoner(conn: Connection, node_id: str, name: str) -> tuple[bool, Reasoner | None]:
    """Whether a node is registered, and its reasoner of this name, without its schema."""
    row = await conn.row(_REASONER, {"node_id": node_id, "name": name})
    if row is None:
        return False, None
    return True, None if row.name is None else to_struct(row, Reasoner)


async def names(conn: Connection, limit: int) -> list[str]:
    """The nodes in reach, those first that are there, as many as may be named in an answer."""
    there = sa.exists().where(instances.c.node_id == nodes.c.node_id, _THERE)
    statement = sa.select(nodes.c.node_id).where(in_reach(conn, nodes.c.node_id))
    statement = statement.order_by(there.desc(), nodes.c.updated_at.desc()).limit(limit)
    return [row.node_id for row in await conn.rows(statement)]


async def instances_there(conn: Connection, node_ids: Sequence[str]) -> list[Instance]:
    """The instances of these nodes that are there, newest first."""
    statement = sa.select(*_INSTANCE).where(instances.c.node_id == sa.any_(texts(node_ids)), _THERE)
    return [to_struct(row, Instance) for row in await conn.rows(statement.order_by(*_NEWEST_FIRST))]


async def instances_of(conn: Connection, node_id: str, limit: int) -> list[Instance]:
    """A node's instances: those that are there and then those that are gone, each newest first."""
    statement = sa.select(*_INSTANCE).where(instances.c.node_id == node_id).order_by(_THERE.desc(), *_NEWEST_FIRST)
    return [to_struct(row, Instance) for row in await conn.rows(statement.limit(limit))]


# Built once: building one of these costs more than running it.
_REASONER = Statement(
    sa.text("""
SELECT found.value ->> 'name' AS name, found.value ->> 'resume' AS resume,
       CAST(found.value ->> 'timeout_seconds' AS double precision) AS timeout_seconds
FROM nodes n
LEFT JOIN LATERAL (
    SELECT value FROM jsonb_array_elements(n.reasoners) WHERE value ->> 'name' = :name LIMIT 1
) AS found ON true
WHERE n.node_id = :node_id
""")
)
