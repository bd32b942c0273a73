"""History: one row a fact, read as a stream without gaps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.events import Fact, FactType
from controlplane.domain.executions import FINAL_EXECUTION
from controlplane.domain.redaction import without_keys
from controlplane.storage.engine import Connection
from controlplane.storage.reach import in_reach
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import history


class Entry(Struct, frozen=True, kw_only=True):
    """A history row as it is shown and streamed; `xid` and `seq` are its place in the stream."""

    xid: str
    seq: int
    at: datetime
    type: str
    actor_kind: str
    actor_name: str
    actor_via: str
    execution_id: str | None
    approval_id: str | None
    approval_request_id: str | None
    node_id: str | None
    settles: bool
    data: dict[str, Any]


class Position(Struct, frozen=True):
    """A place in the stream: everything up to and with this row has been read."""

    xid: str = "0"
    seq: int = 0


_SHOWN = [
    sa.cast(history.c.xid, sa.Text).label("xid"),
    *(c for c in columns(history, Entry) if c.name != "xid"),
]
_HORIZON = sa.text("xid < pg_snapshot_xmin(pg_current_snapshot())")


# One statement's worth of facts, in their order; `:facts` is what `encoded` returns.
RECORD = """
    INSERT INTO history (type, execution_id, approval_id, approval_request_id, node_id,
                         actor_kind, actor_name, actor_via, actor_address, actor_id, settles, data)
    SELECT v.type, v.execution_id, v.approval_id, v.approval_request_id, v.node_id,
           v.actor ->> 'kind', v.actor ->> 'name', v.actor ->> 'via', v.actor ->> 'address', v.actor ->> 'id',
           v.settles, v.data
    FROM ROWS FROM (
        jsonb_to_recordset(CAST(:facts AS jsonb)) AS (
            type text, execution_id text, approval_id text, approval_request_id text, node_id text,
            actor jsonb, settles boolean, data jsonb)
    ) WITH ORDINALITY AS v
    ORDER BY v.ordinality
"""
_RECORD = Statement(sa.text(RECORD))


def encoded(facts: Sequence[Fact]) -> str:
    """Facts as the parameter of `RECORD`; a key that somebody wrote into a text would stay in them for ever."""
    return without_keys(msgspec.json.encode(facts).decode())


async def record(conn: Connection, *facts: Fact) -> None:
    """Add facts that change neither an execution nor an approval (those go through `cases.save`)."""
    if facts:
        await conn.run(_RECORD, {"facts": encoded(facts)})
        conn.changes.wrote = True


async def of_approval(conn: Connection, approval_id: str) -> list[Entry]:
    """Everything that happened to one approval, oldest first."""
    rows = await conn.rows(sa.select(*_SHOWN).where(history.c.approval_id == approval_id).order_by(history.c.seq))
    return [to_struct(row, Entry) for row in rows]


async def end(conn: Connection) -> Position:
    """The place after everything that can be streamed now."""
    row = await conn.row(
        sa.select(*_SHOWN[:2]).where(_HORIZON).order_by(history.c.xid.desc(), history.c.seq.desc()).limit(1)
    )
    return Position(row.xid, row.seq) if row else Position()


async def after(
    conn: Connection,
    position: Position,
    *,
    execution_id: str | None = None,
    types: tuple[str, ...] = (),
    limit: int = 500,
) -> list[Entry]:
    """The rows after a place, in order, as far as no open transaction can still add one before them.

    A number from a sequence is not enough: a slow transaction's earlier number would never be seen. So only rows of
    transactions older than every one still open are sent, ordered by (transaction, number).
    """
    place = sa.text("(xid, seq) > (CAST(CAST(:xid AS text) AS xid8), :seq)").bindparams(
        xid=position.xid, seq=position.seq
    )
    statement = sa.select(*_SHOWN).where(_HORIZON, place).order_by(history.c.xid, history.c.seq).limit(limit)
    if execution_id is not None:
        statement = statement.where(history.c.execution_id == execution_id)
    statement = statement.where(in_reach(conn, history.c.node_id))
    if types:
        statement = statement.where(history.c.type.in_(types))
    return [to_struct(row, Entry) for row in await conn.rows(statement)]


# Rows after which something may be dispatched or released at once. Room that a node gained is found within a second.
_WORK = frozenset({"execution.queued", FactType.EXECUTION_RELEASED, "node.registered", "node.gone"})
_EXECUTION_ENDS = frozenset(f"execution.{status}" for status in FINAL_EXECUTION)
_FEEDBACK_ENDS = frozenset({FactType.FEEDBACK_ANSWERED, FactType.FEEDBACK_EXPIRED, FactType.FEEDBACK_CANCELLED})


class News(Struct, frozen=True):
    """What was committed since a snapshot: approvals and executions that ended, and the snapshot to look from next.

    `work`: some run came into the queue, or made room at its node. `rows`: each row's type, execution, approval and
    short-lived question; `closed` are those of these that ended.
    """

    settled: list[str]
    ended: list[str]
    work: bool
    wrote: bool
    horizon: str
    rows: list[tuple[str, str | None, str | None, str | None]]
    closed: list[str]


async def since(conn: Connection, horizon: str | None) -> News:
    """What became visible since the snapshot `horizon`; None only takes one.

    A row that an earlier look could not see is of a transaction that was open then or that began later: each is
    returned once, however long another transaction stays open. Unlike the stream it waits for none.
    """
    if horizon is None:
        rows = await conn.rows(_MARK)
        return News([], [], work=False, wrote=False, horizon=rows[0].horizon, rows=[], closed=[])
    rows = await conn.rows(_SINCE, {"horizon": horizon})
    return News(
        [row.approval_id for row in rows if row.settles],
        [row.execution_id for row in rows if row.type in _EXECUTION_ENDS],
        work=any(row.type in _WORK for row in rows),
        wrote=any(row.seq is not None for row in rows),
        horizon=rows[0].horizon,
        rows=[(row.type, row.execution_id, row.approval_id, row.unique_id) for row in rows if row.seq is not None],
        closed=[row.unique_id for row in rows if row.type in _FEEDBACK_ENDS],
    )


_MARK = Statement(sa.text("SELECT CAST(pg_current_snapshot() AS text) AS horizon"))
_SINCE = Statement(
    sa.text("""
WITH fresh AS (
    SELECT seq, type, execution_id, approval_id, settles,
           CASE WHEN type LIKE 'feedback.%' THEN data ->> 'unique_id' END AS unique_id
    FROM history
    WHERE xid >= pg_snapshot_xmax(CAST(CAST(:horizon AS text) AS pg_snapshot))
    UNION ALL
    SELECT seq, type, execution_id, approval_id, settles,
           CASE WHEN type LIKE 'feedback.%' THEN data ->> 'unique_id' END AS unique_id
    FROM history
    WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip(CAST(CAST(:horizon AS text) AS pg_snapshot))))
)
SELECT CAST(pg_current_snapshot() AS text) AS horizon, fresh.*
FROM (SELECT 1) AS always LEFT JOIN fresh ON true
""")
)
