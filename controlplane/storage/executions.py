"""Executions as they are remembered: with their input, result, error and notes."""

from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.executions import FINAL_EXECUTION, WAITING_FOR_NODE, ExecutionStatus
from controlplane.domain.nodes import InstanceStatus
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from controlplane.storage.reach import in_reach, within
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import dispatches, executions, instances, notes


class Run(Struct, frozen=True, kw_only=True):
    """An execution as it is shown; `input` and `result` are JSON as received.

    `status_reason` says so while it waits for an instance of its node; `attempts` and `last_error` are those of its
    present dispatch. `agent_reply`, what an agent refused it with, is for its node and administrators alone.
    """

    execution_id: str
    node_id: str
    reasoner: str | None
    run_id: str | None
    parent_execution_id: str | None
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
    dispatched: bool
    fence: int
    instance_id: str | None
    outcome_pending: bool
    limit_seconds: float | None
    worked_seconds: float
    attempts: int
    last_error: str | None
    started_by: str | None
    agent_reply: str | None

    @property
    def final(self) -> bool:
        """True when the execution is over."""
        return self.status in FINAL_EXECUTION


class Starting(Struct, frozen=True, kw_only=True):
    """An execution that its own program starts."""

    execution_id: str
    node_id: str
    reasoner: str | None
    run_id: str | None
    input: bytes | None
    started_by: str | None = None


class Queued(Struct, frozen=True, kw_only=True):
    """An execution that an agent is to be found for; `idempotency_key` names the call that asked for it."""

    execution_id: str
    node_id: str
    reasoner: str
    run_id: str
    parent_execution_id: str | None
    input: bytes | None
    idempotency_key: str | None
    limit_seconds: float | None
    resume_at_start: bool
    started_by: str | None = None


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


_IS_THERE = sa.exists().where(
    instances.c.node_id == executions.c.node_id, instances.c.status == sa.literal_column(f"'{InstanceStatus.LIVE}'")
)
_IN_NO_HANDS = sa.and_(
    executions.c.dispatched,
    sa.or_(executions.c.ended_at.is_(None), executions.c.outcome_pending),
    sa.or_(executions.c.instance_id.is_(None), executions.c.status == sa.literal_column(f"'{ExecutionStatus.QUEUED}'")),
)
_REASON = sa.case(
    (sa.and_(_IN_NO_HANDS, sa.not_(_IS_THERE)), sa.literal_column(f"'{WAITING_FOR_NODE}'")),
    else_=executions.c.status_reason,
)


def _of_dispatch(column: sa.Column[Any]) -> sa.ScalarSelect[Any]:
    return sa.select(column).where(dispatches.c.execution_id == executions.c.execution_id).scalar_subquery()


# What a `Run` is made of; whoever reads one selects these.
RUN = [
    *(column for column in columns(executions, Run) if column.name != "status_reason"),
    _REASON.label("status_reason"),
    sa.func.coalesce(_of_dispatch(dispatches.c.attempts), 0).label("attempts"),
    _of_dispatch(dispatches.c.last_error).label("last_error"),
]
_STALE_AFTER = sa.text("interval '24 hours'")


async def start(conn: Connection, starting: Starting) -> bool:
    """Add a running execution; False when one with this id is there already."""
    return await conn.run(_START, msgspec.structs.asdict(starting)) == 1


async def enqueue(conn: Connection, queued: Queued) -> bool:
    """Add an execution that is to be dispatched; False when its id or its key is taken."""
    values = msgspec.structs.asdict(queued) | {"status": ExecutionStatus.QUEUED, "dispatched": True}
    return await conn.run(upsert(executions).values(values).on_conflict_do_nothing()) == 1


async def id_of_key(conn: Connection, key: str, started_by: str | None) -> str | None:
    """The execution that a caller's call with this idempotency key made; other callers' keys are their own."""
    mine = sa.func.coalesce(executions.c.started_by, "") == (started_by or "")
    row = await conn.row(sa.select(executions.c.execution_id).where(executions.c.idempotency_key == key, mine))
    return row.execution_id if row else None


async def get(conn: Connection, execution_id: str) -> Run | None:
    """One execution, whole."""
    row = await within(conn, await conn.row(_GET, {"execution_id": execution_id}))
    return to_struct(row, Run) if row else None


async def status_of(conn: Connection, execution_id: str) -> tuple[ExecutionStatus, str | None] | None:
    """An execution's status and reason."""
    seen = [executions.c[name] for name in ("status", "status_reason", "node_id", "started_by")]
    row = await within(conn, await conn.row(sa.select(*seen).where(executions.c.execution_id == execution_id)))
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


async def keep_reply(conn: Connection, execution_id: str, reply: str) -> None:
    """Store what an agent answered to a dispatch, in the place of what one answered before."""
    mine = executions.c.execution_id == execution_id
    await conn.run(sa.update(executions).where(mine).values(agent_reply=reply))


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


async def next_out_of_time_in(conn: Connection) -> float | None:
    """Seconds until the next run's limit passes, below zero when overdue; None where nothing is limited."""
    row = await conn.row(
        sa.select(
            sa.func.extract("epoch", sa.func.min(executions.c.work_deadline) - sa.func.clock_timestamp()).label("s")
        )
    )
    return None if row is None or row.s is None else float(row.s)


async def page(conn: Connection, which: Filter, after: Place | None, limit: int) -> list[Run]:
    """One page of executions, newest first."""
    key = sa.tuple_(executions.c.created_at, executions.c.execution_id)
    statement = sa.select(*RUN).limit(limit).order_by(executions.c.created_at.desc(), executions.c.execution_id.desc())
    statement = statement.where(in_reach(conn, executions.c.node_id, executions.c.started_by))
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
    """The notes of an execution, oldest first; whoever only started it elsewhere reads none."""
    mine = sa.exists().where(executions.c.execution_id == notes.c.execution_id, in_reach(conn, executions.c.node_id))
    rows = await conn.rows(
        sa.select(*columns(notes, Note))
        .where(notes.c.execution_id == execution_id, mine)
        .order_by(notes.c.at, notes.c.note_id)
    )
    return [to_struct(row, Note) for row in rows]


# Built once: building one of these costs more than running it.
_GET = Statement(sa.select(*RUN).where(executions.c.execution_id == sa.bindparam("execution_id")))
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
        | {
            "status": ExecutionStatus.RUNNING,
            "started_at": sa.func.clock_timestamp(),
            "running_since": sa.func.clock_timestamp(),
        }
    )
    .on_conflict_do_nothing(index_elements=["execution_id"])
)
