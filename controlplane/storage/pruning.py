"""Pruning as it is remembered, and rows on their way out of history: which must stay, and taking the others."""

from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.events import FactType
from controlplane.domain.pruning import Pruning, read_record
from controlplane.domain.seals import Place, Texts, moment, place_of
from controlplane.storage.engine import Connection
from controlplane.storage.history import Position
from controlplane.storage.seals import AFTER_PLACE, TEXTS, beyond, binds_of
from controlplane.storage.statement import Statement
from controlplane.storage.tables import history


class Kept(Struct, frozen=True):
    """A row that must stay, and why."""

    place: Place
    why: str


async def newest(conn: Connection) -> Pruning | None:
    """The newest pruning, with what history says of it."""
    row = await conn.row(_NEWEST, {"type": FactType.HISTORY_PRUNED})
    if row is None:
        return None
    at = None if row.at is None else moment(row.at)
    return Pruning(seal=row.seal, record=None if row.data is None else read_record(row.data), at=at)


async def pruned_to(conn: Connection) -> Position | None:
    """The place of the last row that was pruned; None when none was."""
    row = await conn.row(_PRUNED_TO)
    return None if row is None else Position(row.xid, row.seq)


async def is_owner(conn: Connection) -> bool:
    """Whether this role may do to history whatever its owner may."""
    row = await conn.row(_IS_OWNER)
    return row is not None and row.owner


async def who(conn: Connection) -> str:
    """The role that logged in."""
    row = await conn.row(_WHO)
    return "" if row is None else str(row.who)


async def take_turn(conn: Connection, lock_timeout: str) -> bool:
    """Become the only one that prunes until this transaction ends, waiting longer for locks; False if another one is.

    Args:
        conn: the open transaction.
        lock_timeout: for any other lock that somebody holds, as PostgreSQL writes it.
    """
    row = await conn.row(_TAKE_TURN, {"lock_timeout": lock_timeout})
    return row is not None and row.mine


async def first_kept(conn: Connection, place: Place, upto: Place, before: datetime) -> Kept | None:
    """The first row after a place and up to another, with it, that is not to be pruned.

    Those stay that are not older than `before`, and those of anything that goes on: a run that has not ended or whose
    code has not seen its end, with what is still to be sent for it, and an early answer that waits for its question.
    """
    binds = binds_of("after", place) | binds_of("upto", upto) | {"before": before}
    row = await conn.row(_FIRST_KEPT, binds)
    return None if row is None else Kept(Place(int(row.xid), row.seq), row.why)


async def mark(conn: Connection, seal: int) -> None:
    """Have the rows up to a seal count as pruned; from here on this transaction may delete from history."""
    await conn.run(_MARK, {"seal": seal})


async def take_out(conn: Connection, place: Place, upto: Place) -> Sequence[Texts]:
    """Delete the rows after a place and up to another, with it; return them in order."""
    rows = await conn.rows(_TAKE_OUT, binds_of("after", place) | binds_of("upto", upto))
    return sorted((row.texts for row in rows), key=place_of)


_NEWEST = Statement(
    sa.text("""
SELECT p.seal, h.at, h.data FROM prunings p LEFT JOIN history h ON h.xid = p.xid AND h.type = :type
ORDER BY p.seal DESC, h.seq DESC LIMIT 1
""").columns(sa.column("data", history.c.data.type))
)
_PRUNED_TO = Statement(
    sa.text("""
SELECT CAST(last_xid AS text) AS xid, last_seq AS seq FROM seals
WHERE number = (SELECT max(seal) FROM prunings)
""")
)
_IS_OWNER = Statement(
    sa.text("""
SELECT coalesce(bool_and(pg_has_role(current_user, relowner, 'USAGE')), false) AS owner
FROM pg_class WHERE oid IN (to_regclass('history'), to_regclass('prunings'))
""")
)
_WHO = Statement(sa.text("SELECT CAST(session_user AS text) AS who"))
_TAKE_TURN = Statement(
    sa.text("""
SELECT set_config('lock_timeout', :lock_timeout, true),
       pg_try_advisory_xact_lock(hashtextextended('holdshort.prune', 0)) AS mine
""")
)
_FIRST_KEPT = Statement(
    sa.text("""
SELECT CAST(xid AS text) AS xid, seq, why FROM (
    SELECT h.xid, h.seq, CASE
        WHEN h.at >= :before THEN 'it is not old enough'
        WHEN e.ended_at IS NULL AND e.execution_id IS NOT NULL
            THEN 'execution ' || e.execution_id || ' has not ended: it is ' || e.status
        WHEN e.outcome_pending THEN 'the code of execution ' || e.execution_id || ' has not seen its end'
        WHEN EXISTS (SELECT FROM deliveries d WHERE d.execution_id = h.execution_id AND d.status = 'pending')
            THEN 'a delivery of execution ' || h.execution_id || ' is pending'
        WHEN EXISTS (SELECT FROM dispatches d WHERE d.execution_id = h.execution_id AND d.due_at IS NOT NULL)
            THEN 'something is to be sent to the agent of execution ' || h.execution_id
        WHEN EXISTS (SELECT FROM parked p WHERE p.approval_request_id = h.approval_request_id)
            THEN 'an early answer to ' || h.approval_request_id || ' waits for its question'
        END AS why
    FROM history h LEFT JOIN executions e ON e.execution_id = h.execution_id
    WHERE (h.xid, h.seq) > (CAST(CAST(:after_xid AS text) AS xid8), :after_seq)
      AND (h.xid, h.seq) <= (CAST(CAST(:upto_xid AS text) AS xid8), :upto_seq)
) AS found
WHERE why IS NOT NULL ORDER BY found.xid, found.seq LIMIT 1
""").bindparams(sa.bindparam("before", type_=sa.TIMESTAMP(timezone=True)))
)
_MARK = Statement(sa.text("INSERT INTO prunings (seal) VALUES (:seal)"))
_TAKE_OUT = Statement(sa.delete(history).where(AFTER_PLACE, beyond("<=", "upto")).returning(TEXTS))
