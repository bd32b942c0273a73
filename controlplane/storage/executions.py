"""Executions as they are remembered: with their input, result, error and notes."""

from datetime import datetime

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.executions import ExecutionStatus
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import executions, notes


class Run(Struct, frozen=True, kw_only=True):
    """An execution as it is shown; `input` and `result` are JSON as received."""

    execution_id: str
    node_id: str
    reasoner: str | None
    run_id: str | None
    status: ExecutionStatus
    status_reason: str | None
    pending_approvals: int
    input: bytes | None
    result: bytes | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    ended_at: datetime | None


class Starting(Struct, frozen=True, kw_only=True):
    """An execution that its own program starts."""

    execution_id: str
    node_id: str
    reasoner: str | None
    run_id: str | None
    input: bytes | None


class Note(Struct, frozen=True, kw_only=True):
    """A line that an agent keeps with its execution; `note_id` is the agent's, so that a retry writes once."""

    note_id: str
    message: str
    tags: tuple[str, ...]
    at: datetime | None = None


class Filter(Struct, frozen=True, kw_only=True):
    """Which executions a list shows; `stale_before` keeps the running ones that gave no sign since then."""

    status: ExecutionStatus | None = None
    node_id: str | None = None
    stale: bool = False


_RUN = columns(executions, Run)
_STALE_AFTER = sa.text("interval '24 hours'")


async def start(conn: Connection, starting: Starting) -> bool:
    """Add a running execution; False when one with this id is there already."""
    return await conn.run(_START, msgspec.structs.asdict(starting)) == 1


async def get(conn: Connection, execution_id: str) -> Run | None:
    """One execution, whole."""
    row = await conn.row(_GET, {"execution_id": execution_id})
    return to_struct(row, Run) if row else None


async def status_of(conn: Connection, execution_id: str) -> tuple[ExecutionStatus, str | None] | None:
    """An execution's status and reason."""
    row = await conn.row(
        sa.select(executions.c.status, executions.c.status_reason).where(executions.c.execution_id == execution_id)
    )
    return (ExecutionStatus(row.status), row.status_reason) if row else None


async def keep_outcome(conn: Connection, execution_id: str, result: bytes | None, error: str | None) -> bool:
    """Store what a run that ended brought, once; False when there was nothing to store or something stands already."""
    if result is None and error is None:
        return False
    statement = (
        sa.update(executions)
        .where(executions.c.execution_id == execution_id, executions.c.result.is_(None), executions.c.error.is_(None))
        .values(result=result, error=error, updated_at=sa.func.clock_timestamp())
    )
    return await conn.run(statement) == 1


async def touch(conn: Connection, execution_id: str) -> None:
    """Keep that an execution gave a sign of life."""
    await conn.run(
        sa.update(executions)
        .where(executions.c.execution_id == execution_id)
        .values(updated_at=sa.func.clock_timestamp())
    )


async def progressed(conn: Connection, execution_id: str) -> None:
    """Keep that a run got further: whatever stopped it before does not count any more, and who holds it is alive."""
    await conn.run(_PROGRESSED, {"execution_id": execution_id})


async def page(conn: Connection, which: Filter, after: Place | None, limit: int) -> list[Run]:
    """One page of executions, newest first."""
    key = sa.tuple_(executions.c.created_at, executions.c.execution_id)
    statement = sa.select(*_RUN).limit(limit).order_by(executions.c.created_at.desc(), executions.c.execution_id.desc())
    if which.status is not None:
        statement = statement.where(executions.c.status == which.status)
    if which.node_id is not None:
        statement = statement.where(executions.c.node_id == which.node_id)
    if which.stale:
        statement = statement.where(
            executions.c.status == ExecutionStatus.RUNNING,
            executions.c.updated_at < sa.func.clock_timestamp() - _STALE_AFTER,
        )
    if after is not None:
        statement = statement.where(key < sa.tuple_(sa.literal(after.at), sa.literal(after.id)))
    return [to_struct(row, Run) for row in await conn.rows(statement)]


async def add_note(conn: Connection, execution_id: str, note: Note) -> tuple[Note, bool]:
    """Keep a note and return the one that is kept; False when it was kept before, perhaps with other words."""
    values = {"execution_id": execution_id, "note_id": note.note_id, "message": note.message, "tags": list(note.tags)}
    added = upsert(notes).values(values).on_conflict_do_nothing(index_elements=["execution_id", "note_id"])
    new = await conn.run(added) == 1
    mine = sa.and_(notes.c.execution_id == execution_id, notes.c.note_id == note.note_id)
    return to_struct(await conn.row(sa.select(*columns(notes, Note)).where(mine)), Note), new


async def notes_of(conn: Connection, execution_id: str) -> list[Note]:
    """The notes of an execution, oldest first."""
    rows = await conn.rows(
        sa.select(*columns(notes, Note))
        .where(notes.c.execution_id == execution_id)
        .order_by(notes.c.at, notes.c.note_id)
    )
    return [to_struct(row, Note) for row in rows]


# Built once: building one of these costs more than running it.
_GET = Statement(sa.select(*_RUN).where(executions.c.execution_id == sa.bindparam("execution_id")))
_PROGRESSED = Statement(
    sa.update(executions)
    .where(executions.c.execution_id == sa.bindparam("execution_id"))
    # Of a run that nobody was given, nothing is proven.
    .values(stalls=0, proven=executions.c.dispatched, updated_at=sa.func.clock_timestamp())
)
_START = Statement(
    upsert(executions)
    .values(
        {field: sa.bindparam(field) for field in Starting.__struct_fields__}
        | {"status": ExecutionStatus.RUNNING, "started_at": sa.func.clock_timestamp()}
    )
    .on_conflict_do_nothing(index_elements=["execution_id"])
)
