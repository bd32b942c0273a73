"""What a person sees beside one approval: its rounds, what else its run waits for, and whether its agent was told."""

from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.nodes import InstanceStatus
from controlplane.storage.engine import Connection
from controlplane.storage.inbox_columns import IS_QUESTION, of_end
from controlplane.storage.reach import in_reach
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.tables import APPROVAL_PENDING, approvals, deliveries, history, instances, nodes

MOST_ROUNDS = 20
MOST_BESIDE = 20


class Round(Struct, frozen=True, kw_only=True):
    """One round of a question, with what was asked and what came of it."""

    approval_id: str
    round: int
    question: bool
    status: ApprovalStatus
    title: str | None
    description: str | None
    payload: bytes | None
    payload_digest: str | None
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    feedback: str | None
    response: bytes | None
    by: str | None
    by_kind: str | None


class Beside(Struct, frozen=True, kw_only=True):
    """Another approval that the same run waits for."""

    approval_id: str
    approval_request_id: str
    title: str | None
    expires_at: datetime


class Presence(Struct, frozen=True, kw_only=True):
    """Whether a node ever registered, whether an instance of it is there, and when one was seen last."""

    registered: bool
    there: bool
    seen_at: datetime | None


class Telling(Struct, frozen=True, kw_only=True):
    """How far its agent was told of an end."""

    status: DeliveryStatus
    attempts: int
    due_at: datetime
    last_error: str | None
    last_attempt_at: datetime | None
    settled_at: datetime | None
    resting: bool


async def rounds(conn: Connection, execution_id: str, request_id: str) -> list[Round]:
    """The newest rounds under a request id of one run, newest first."""
    statement = (
        sa.select(
            *columns(approvals, Round),
            IS_QUESTION,
            of_end(history.c.actor_name).label("by"),
            of_end(history.c.actor_kind).label("by_kind"),
        )
        .where(
            approvals.c.execution_id == execution_id,
            approvals.c.approval_request_id == request_id,
            in_reach(conn, approvals.c.node_id),
        )
        .order_by(approvals.c.round.desc())
        .limit(MOST_ROUNDS)
    )
    return [to_struct(row, Round) for row in await conn.rows(statement)]


async def beside(conn: Connection, execution_id: str, *, but: str | None = None) -> list[Beside]:
    """What a run waits for besides one approval, soonest deadline first."""
    statement = (
        sa.select(*columns(approvals, Beside))
        .where(approvals.c.execution_id == execution_id, APPROVAL_PENDING, in_reach(conn, approvals.c.node_id))
        .order_by(approvals.c.expires_at, approvals.c.approval_id)
        .limit(MOST_BESIDE)
    )
    if but is not None:
        statement = statement.where(approvals.c.approval_id != but)
    return [to_struct(row, Beside) for row in await conn.rows(statement)]


async def presence(conn: Connection, node_id: str) -> Presence:
    """Whether a node is there."""
    mine = instances.c.node_id == node_id
    there = sa.exists().where(mine, instances.c.status != InstanceStatus.GONE)
    row = await conn.row(
        sa.select(
            sa.exists().where(nodes.c.node_id == node_id).label("registered"),
            there.label("there"),
            sa.select(sa.func.max(instances.c.seen_at)).where(mine).scalar_subquery().label("seen_at"),
        )
    )
    return to_struct(row, Presence)


async def told(conn: Connection, approval_id: str) -> Telling | None:
    """How far the telling of an approval's end has come; None where its agent asks for it by itself."""
    row = await conn.row(sa.select(*columns(deliveries, Telling)).where(deliveries.c.approval_id == approval_id))
    return to_struct(row, Telling) if row else None
