"""Runs as people look through them: without what went in and came out, which may weigh megabytes; and their history."""

from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from controlplane.storage.executions import RUN
from controlplane.storage.history import Entry
from controlplane.storage.inbox_columns import IS_QUESTION
from controlplane.storage.reach import in_reach
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.tables import approvals, executions, history

MOST_LINES = 200


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in the list."""

    execution_id: str
    node_id: str
    reasoner: str | None
    status: ExecutionStatus
    status_reason: str | None
    pending_approvals: int
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None


class AskedRow(Struct, frozen=True, kw_only=True):
    """An approval of a run."""

    approval_id: str
    approval_request_id: str
    title: str | None
    round: int
    question: bool
    status: ApprovalStatus
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None


_ROW = [column for column in RUN if column.name in RunRow.__struct_fields__]


async def page(
    conn: Connection, status: ExecutionStatus | None, node_id: str | None, after: Place | None, limit: int
) -> list[RunRow]:
    """One page of runs, newest first."""
    key = sa.tuple_(executions.c.created_at, executions.c.execution_id)
    statement = sa.select(*_ROW).where(in_reach(conn, executions.c.node_id, executions.c.started_by)).limit(limit)
    if status is not None:
        statement = statement.where(executions.c.status == status)
    if node_id is not None:
        statement = statement.where(executions.c.node_id == node_id)
    if after is not None:
        statement = statement.where(key < sa.tuple_(sa.literal(after.at), sa.literal(after.id)))
    order = (executions.c.created_at.desc(), executions.c.execution_id.desc())
    return [to_struct(row, RunRow) for row in await conn.rows(statement.order_by(*order))]


async def asked(conn: Connection, execution_id: str, limit: int = MOST_LINES) -> list[AskedRow]:
    """What a run asked, newest first."""
    statement = sa.select(*columns(approvals, AskedRow), IS_QUESTION).where(
        approvals.c.execution_id == execution_id, in_reach(conn, approvals.c.node_id)
    )
    order = (approvals.c.requested_at.desc(), approvals.c.round.desc(), approvals.c.approval_id)
    return [to_struct(row, AskedRow) for row in await conn.rows(statement.order_by(*order).limit(limit))]


async def timeline(conn: Connection, execution_id: str, limit: int = MOST_LINES) -> list[Entry]:
    """What happened to a run, the newest rows of its history, oldest first."""
    statement = (
        sa.select(
            sa.cast(history.c.xid, sa.Text).label("xid"), *(c for c in columns(history, Entry) if c.name != "xid")
        )
        .where(history.c.execution_id == execution_id, in_reach(conn, history.c.node_id))
        .order_by(history.c.seq.desc())
        .limit(limit)
    )
    return [to_struct(row, Entry) for row in await conn.rows(statement)][::-1]
