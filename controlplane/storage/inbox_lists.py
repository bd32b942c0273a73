"""Approvals as people look through them: what waits, soonest deadline first, and what is over, latest end first."""

from datetime import datetime
from enum import StrEnum

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from controlplane.storage.inbox_columns import IS_QUESTION, of_end
from controlplane.storage.reach import in_reach
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.tables import APPROVAL_DECIDED, APPROVAL_LAPSED, APPROVAL_PENDING, approvals, history


class Tab(StrEnum):
    """Which approvals are listed; each is in exactly one of waiting, decided and expired.

    What was withdrawn stands under `expired`: it too ended without anybody's verdict.
    """

    WAITING = "waiting"
    DECIDED = "decided"
    EXPIRED = "expired"
    ALL = "all"


class Listed(Struct, frozen=True, kw_only=True):
    """A row of the list: never its payload. `by` and `by_kind` are who ended it, None while it is pending."""

    approval_id: str
    execution_id: str
    node_id: str
    approval_request_id: str
    round: int
    status: ApprovalStatus
    on_expiry: OnExpiry
    requested_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    title: str | None
    kind: str | None
    question: bool
    by: str | None
    by_kind: str | None


class Sought(Struct, frozen=True, kw_only=True):
    """What is looked for: `text` in titles and ids, and a node."""

    tab: Tab = Tab.WAITING
    text: str | None = None
    node_id: str | None = None


_LISTED = [
    *columns(approvals, Listed),
    sa.literal_column("approvals.form ->> 'kind'", sa.Text).label("kind"),
    IS_QUESTION,
    of_end(history.c.actor_name).label("by"),
    of_end(history.c.actor_kind).label("by_kind"),
]
_WHERE: dict[Tab, sa.ColumnElement[bool] | sa.TextClause] = {
    Tab.WAITING: APPROVAL_PENDING,
    Tab.DECIDED: APPROVAL_DECIDED,
    Tab.EXPIRED: APPROVAL_LAPSED,
    Tab.ALL: sa.true(),
}
_MOMENT = {
    Tab.WAITING: approvals.c.expires_at,
    Tab.DECIDED: approvals.c.decided_at,
    Tab.EXPIRED: approvals.c.decided_at,
    Tab.ALL: approvals.c.requested_at,
}


def place_of(row: Listed, tab: Tab) -> datetime:
    """The moment that a tab's rows are ordered by."""
    moment: datetime = getattr(row, _MOMENT[tab].name)
    return moment


async def page(conn: Connection, sought: Sought, after: Place | None, limit: int) -> list[Listed]:
    """One page of a tab: what waits by its deadline, soonest first; the others by their end or asking, latest first."""
    moment, up = _MOMENT[sought.tab], sought.tab is Tab.WAITING
    statement = sa.select(*_LISTED).where(_WHERE[sought.tab], *_conditions(sought)).limit(limit)
    statement = statement.where(in_reach(conn, approvals.c.node_id))
    if after is not None:
        key, mark = sa.tuple_(moment, approvals.c.approval_id), sa.tuple_(sa.literal(after.at), sa.literal(after.id))
        statement = statement.where(key > mark if up else key < mark)
    order = (moment, approvals.c.approval_id) if up else (moment.desc(), approvals.c.approval_id.desc())
    return [to_struct(row, Listed) for row in await conn.rows(statement.order_by(*order))]


async def waiting(conn: Connection) -> int:
    """How many approvals wait for an answer."""
    statement = sa.select(sa.func.count().label("waiting")).where(APPROVAL_PENDING, in_reach(conn, approvals.c.node_id))
    row = await conn.row(statement.select_from(approvals))
    return 0 if row is None else int(row.waiting)


async def one(conn: Connection, approval_id: str) -> Listed | None:
    """One approval as a row."""
    mine = sa.and_(approvals.c.approval_id == approval_id, in_reach(conn, approvals.c.node_id))
    row = await conn.row(sa.select(*_LISTED).where(mine))
    return to_struct(row, Listed) if row else None


def _conditions(sought: Sought) -> list[sa.ColumnElement[bool]]:
    conditions: list[sa.ColumnElement[bool]] = []
    if sought.node_id is not None:
        conditions.append(approvals.c.node_id == sought.node_id)
    if sought.text is not None:
        fields = (approvals.c.title, approvals.c.approval_request_id, approvals.c.execution_id, approvals.c.approval_id)
        conditions.append(sa.or_(*(field.icontains(sought.text, autoescape=True) for field in fields)))
    return conditions
