"""Deadlines: approvals past theirs are expired, parked answers past theirs are dropped. Any replica does it."""

from controlplane.domain.cases import expire_due
from controlplane.domain.events import SWEEPER, FactType
from controlplane.services.webhooks import parked_fact
from controlplane.storage import cases, history, parked
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection


async def expire_approvals(conn: Connection, *, limit: int, new_id: NewId) -> int:
    """Expire approvals past their deadline in up to `limit` executions; return how many executions were taken.

    Executions that others hold locked are left: whoever holds one expires what is due in it first.
    """
    due = await cases.lock_due(conn, limit)
    await cases.save(conn, [(case, expire_due(case)) for case in due], new_id)
    return len(due)


async def drop_parked(conn: Connection, *, limit: int) -> int:
    """Drop early answers that nobody asked for in time, each with a history row; return how many."""
    dropped = await parked.take_expired(conn, limit)
    await history.record(conn, *(parked_fact(entry, FactType.WEBHOOK_DROPPED, SWEEPER) for entry in dropped))
    return len(dropped)
