"""Approvals as they are remembered: look-ups, lists and the writes that change no state."""

from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.approvals import Approval, ApprovalStatus
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage.engine import Connection
from controlplane.storage.reach import in_reach, within
from controlplane.storage.rows import bound_texts, columns, texts, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import APPROVAL_PENDING, approvals, executions


class Wording(Struct, frozen=True, kw_only=True):
    """What a reviewer reads: no rule depends on it. `payload` is the JSON as received."""

    title: str | None = None
    description: str | None = None
    payload: bytes | None = None


class Shown(Approval, frozen=True, kw_only=True):
    """An approval with its wording and its execution's state, for those who look."""

    execution_status: ExecutionStatus
    title: str | None = None
    description: str | None = None
    payload: bytes | None = None


class Filter(Struct, frozen=True, kw_only=True):
    """Which approvals a list shows."""

    status: ApprovalStatus | None = None
    node_id: str | None = None
    execution_id: str | None = None
    approval_request_id: str | None = None
    text: str | None = None
    by_deadline: bool = False


class Place(Struct, frozen=True):
    """Where a page of a list ended: its last row's sort key."""

    at: datetime
    id: str


class Candidate(Struct, frozen=True):
    """A round that a webhook could mean."""

    approval_id: str
    execution_id: str
    round: int


class Askers(Struct, frozen=True):
    """Who asked under a request id: `several` executions, or one with these rounds, or none at all."""

    several: bool
    rounds: list[Candidate]


_SHOWN = [*columns(approvals, Shown), executions.c.status.label("execution_status")]
_WITH_EXECUTION = approvals.join(executions, approvals.c.execution_id == executions.c.execution_id)
_NEWEST_FIRST = (approvals.c.requested_at.desc(), approvals.c.round.desc(), approvals.c.approval_id.desc())


async def insert(conn: Connection, approval: Approval, wording: Wording) -> None:
    """Add an approval that was just opened."""
    values = {field: getattr(approval, field) for field in approval.__struct_fields__}
    values |= {field: getattr(wording, field) for field in wording.__struct_fields__}
    await conn.run(_INSERT, values)


async def set_callback(conn: Connection, approval_id: str, url: str, secret: str | None) -> None:
    """Keep another address and secret for an approval's callback."""
    await conn.run(
        sa.update(approvals)
        .where(approvals.c.approval_id == approval_id)
        .values(callback_url=url, callback_secret=secret)
    )


async def mark_read(conn: Connection, approval_ids: list[str]) -> None:
    """Keep that an agent has read these final statuses; the first time stands."""
    unread = (
        sa.select(approvals.c.approval_id)
        .where(approvals.c.approval_id == sa.any_(texts(approval_ids)), approvals.c.read_at.is_(None))
        .order_by(approvals.c.approval_id)
        .with_for_update(key_share=True)
    )
    await conn.run(
        sa.update(approvals).where(approvals.c.approval_id.in_(unread)).values(read_at=sa.func.clock_timestamp())
    )


async def get(conn: Connection, approval_id: str) -> Shown | None:
    """One approval by our id."""
    row = await within(conn, await conn.row(_GET, {"approval_id": approval_id}))
    return to_struct(row, Shown) if row else None


async def payload_of(conn: Connection, approval_id: str) -> bytes | None:
    """The payload of an approval whose execution is locked, as the bytes received."""
    row = await conn.row(_PAYLOAD, {"approval_id": approval_id})
    return row.payload if row else None


async def newest(conn: Connection, execution_id: str, request_id: str | None) -> Shown | None:
    """The newest approval of an execution, or the newest round under one of its request ids."""
    row = await within(conn, await conn.row(_NEWEST, {"execution_id": execution_id, "request_id": request_id}))
    return to_struct(row, Shown) if row else None


async def final_among(conn: Connection, approval_ids: list[str]) -> list[Shown]:
    """Those of the approvals with these ids that are final."""
    rows = await conn.rows(_FINAL_AMONG, {"ids": approval_ids})
    return [to_struct(row, Shown) for row in rows if await within(conn, row) is not None]


async def asked_under(conn: Connection, request_id: str) -> Askers:
    """Whether several executions ever asked under a request id, or the rounds of the only one, newest first."""
    rows = await conn.rows(_ASKED_UNDER, {"request_id": request_id})
    several = rows[0].first != rows[0].last
    return Askers(several, [to_struct(row, Candidate) for row in rows if row.approval_id is not None])


async def rounds(conn: Connection, execution_id: str, request_id: str) -> list[Candidate]:
    """The rounds under a request id in one execution, newest first."""
    rows = await conn.rows(_ROUNDS, {"execution_id": execution_id, "request_id": request_id})
    return [to_struct(row, Candidate) for row in rows]


async def newest_anywhere(conn: Connection, request_id: str) -> Candidate | None:
    """The approval asked last under a request id, in whatever execution."""
    row = await conn.row(
        sa.select(*columns(approvals, Candidate))
        .where(approvals.c.approval_request_id == request_id)
        .order_by(approvals.c.requested_at.desc(), approvals.c.round.desc())
        .limit(1)
    )
    return to_struct(row, Candidate) if row else None


async def other_pending(
    conn: Connection, request_id: str, *, but: str, execution_id: str | None, round_: int | None
) -> bool:
    """Whether another pending approval, in its time, could be meant by the same words as the one that is excepted."""
    statement = sa.select(sa.literal(1)).where(
        approvals.c.approval_request_id == request_id,
        approvals.c.approval_id != but,
        APPROVAL_PENDING,
        approvals.c.expires_at > sa.func.clock_timestamp(),
    )
    if execution_id is not None:
        statement = statement.where(approvals.c.execution_id == execution_id)
    if round_ is not None:
        statement = statement.where(approvals.c.round == round_)
    return await conn.row(statement.limit(1)) is not None


async def page(conn: Connection, which: Filter, after: Place | None, limit: int) -> list[Shown]:
    """One page of a list: newest first, or by deadline, soonest first; stable while rows are added and decided."""
    moment = approvals.c.expires_at if which.by_deadline else approvals.c.requested_at
    key = sa.tuple_(moment, approvals.c.approval_id)
    statement = sa.select(*_SHOWN).select_from(_WITH_EXECUTION).where(*_conditions(which)).limit(limit)
    statement = statement.where(in_reach(conn, approvals.c.node_id))
    if after is not None:
        mark = sa.tuple_(sa.literal(after.at), sa.literal(after.id))
        statement = statement.where(key > mark if which.by_deadline else key < mark)
    order = (moment, approvals.c.approval_id) if which.by_deadline else (moment.desc(), approvals.c.approval_id.desc())
    return [to_struct(row, Shown) for row in await conn.rows(statement.order_by(*order))]


def _conditions(which: Filter) -> list[sa.ColumnElement[bool]]:
    named = {
        approvals.c.status: which.status,
        approvals.c.node_id: which.node_id,
        approvals.c.execution_id: which.execution_id,
        approvals.c.approval_request_id: which.approval_request_id,
    }
    conditions: list[sa.ColumnElement[bool]] = [column == value for column, value in named.items() if value is not None]
    if which.text is not None:
        fields = (approvals.c.title, approvals.c.approval_request_id, approvals.c.execution_id, approvals.c.approval_id)
        conditions.append(sa.or_(*(field.icontains(which.text, autoescape=True) for field in fields)))
    return conditions


async def next_deadline_in(conn: Connection) -> float | None:
    """Seconds until the next pending approval's deadline, below zero when one has passed; None when none is pending."""
    soonest = (
        sa.select(approvals.c.expires_at)
        .where(APPROVAL_PENDING)
        .order_by(approvals.c.expires_at)
        .limit(1)
        .scalar_subquery()
    )
    row = await conn.row(sa.select(sa.func.extract("epoch", soonest - sa.func.clock_timestamp()).label("seconds")))
    return None if row is None or row.seconds is None else float(row.seconds)


# Built once: building one of these costs more than running it.
_INSERT = Statement(sa.insert(approvals), *Approval.__struct_fields__, *Wording.__struct_fields__)
_GET = Statement(
    sa.select(*_SHOWN).select_from(_WITH_EXECUTION).where(approvals.c.approval_id == sa.bindparam("approval_id"))
)
_PAYLOAD = Statement(sa.select(approvals.c.payload).where(approvals.c.approval_id == sa.bindparam("approval_id")))
_NEWEST = Statement(
    sa.select(*_SHOWN)
    .select_from(_WITH_EXECUTION)
    .where(
        approvals.c.execution_id == sa.bindparam("execution_id"),
        sa.or_(
            sa.bindparam("request_id", type_=sa.Text).is_(None),
            approvals.c.approval_request_id == sa.bindparam("request_id"),
        ),
    )
    .order_by(*_NEWEST_FIRST)
    .limit(1)
)
_FINAL_AMONG = Statement(
    sa.select(*_SHOWN)
    .select_from(_WITH_EXECUTION)
    .where(approvals.c.approval_id == sa.any_(bound_texts("ids")), approvals.c.status != ApprovalStatus.PENDING)
)
_ROUNDS = Statement(
    sa.select(*columns(approvals, Candidate))
    .where(
        approvals.c.execution_id == sa.bindparam("execution_id"),
        approvals.c.approval_request_id == sa.bindparam("request_id"),
    )
    .order_by(approvals.c.round.desc())
)
_ASKED_UNDER = Statement(
    sa.text("""
WITH asked AS (
    SELECT min(execution_id) AS first, max(execution_id) AS last
    FROM approvals WHERE approval_request_id = :request_id
)
SELECT asked.first, asked.last, a.approval_id, a.execution_id, a.round
FROM asked
LEFT JOIN approvals a
    ON asked.first = asked.last AND a.execution_id = asked.first AND a.approval_request_id = :request_id
ORDER BY a.round DESC
""")
)
