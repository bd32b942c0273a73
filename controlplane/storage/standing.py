"""How approvals stand now: what a page that is open is told, and nothing of their content."""

from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.approvals import ApprovalStatus
from controlplane.storage.engine import Connection
from controlplane.storage.inbox_columns import IS_QUESTION
from controlplane.storage.reach import in_reach
from controlplane.storage.rows import columns, texts, to_struct
from controlplane.storage.tables import approvals, history


class Standing(Struct, frozen=True, kw_only=True):
    """Where one approval is: still to be decided until `expires_at`, or ended, when and by whom of what kind.

    `question`: it is answered rather than approved.
    """

    approval_id: str
    status: ApprovalStatus
    expires_at: datetime
    decided_at: datetime | None = None
    by: str | None = None
    by_kind: str | None = None
    question: bool = False

    @property
    def final(self) -> bool:
        """True when it has its answer."""
        return self.status is not ApprovalStatus.PENDING


_ENDS = sa.and_(history.c.approval_id == approvals.c.approval_id, history.c.settles)


async def among(conn: Connection, approval_ids: list[str]) -> list[Standing]:
    """How each of these approvals stands, in no order; those that are not there are left out."""
    rows = await conn.rows(
        sa.select(
            *columns(approvals, Standing),
            history.c.actor_name.label("by"),
            history.c.actor_kind.label("by_kind"),
            IS_QUESTION,
        )
        .select_from(approvals.outerjoin(history, _ENDS))
        .where(approvals.c.approval_id == sa.any_(texts(approval_ids)), in_reach(conn, approvals.c.node_id))
    )
    return [to_struct(row, Standing) for row in rows]
