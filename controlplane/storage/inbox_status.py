"""How the whole stands: what waits for people, and how late the work is that workers do."""

from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.storage.engine import Connection
from controlplane.storage.rows import to_struct


class Standing(Struct, frozen=True, kw_only=True):
    """Counts, and the oldest of each kind by the database's clock `at`.

    `overdue` is the deadline of the approval that should have expired first, `delivery_due` and `dispatch_due` since
    when the first callback and the first run are to be sent, `unsealed` since when the first history row waits for its
    seal; each None where nothing is late.
    """

    at: datetime
    server: str
    waiting: int
    oldest_asked: datetime | None
    next_deadline: datetime | None
    overdue: datetime | None
    deliveries_due: int
    delivery_due: datetime | None
    deliveries_resting: int
    deliveries_dead: int
    runs_queued: int
    dispatch_due: datetime | None
    runs_running: int
    runs_waiting: int
    nodes: int
    nodes_there: int
    unsealed: datetime | None


async def look(conn: Connection) -> Standing:
    """How it stands at this moment."""
    return to_struct(await conn.row(_LOOK), Standing)


# Each part is answered by a partial index; nothing that has ended is counted, but for what was given up.
_LOOK = sa.text("""
SELECT now.at, current_setting('server_version') AS server, pending.*, telling.*, runs.*, sending.*, fleet.*,
       (SELECT h.at FROM history h
        WHERE (h.xid, h.seq) > (SELECT s.last_xid, s.last_seq FROM seals s ORDER BY s.number DESC LIMIT 1)
           OR NOT EXISTS (SELECT 1 FROM seals)
        ORDER BY h.xid, h.seq LIMIT 1) AS unsealed
FROM (SELECT clock_timestamp() AS at) AS now,
     LATERAL (SELECT count(*) AS waiting, min(requested_at) AS oldest_asked, min(expires_at) AS next_deadline,
                     min(expires_at) FILTER (WHERE expires_at <= now.at) AS overdue
              FROM approvals WHERE status = 'pending') AS pending,
     LATERAL (SELECT count(*) FILTER (WHERE status = 'pending' AND NOT resting) AS deliveries_due,
                     min(due_at) FILTER (WHERE status = 'pending' AND NOT resting AND due_at <= now.at
                                         AND (lease_until IS NULL OR lease_until <= now.at)) AS delivery_due,
                     count(*) FILTER (WHERE status = 'pending' AND resting) AS deliveries_resting,
                     count(*) FILTER (WHERE status = 'dead') AS deliveries_dead
              FROM deliveries WHERE status IN ('pending', 'dead')) AS telling,
     LATERAL (SELECT count(*) FILTER (WHERE status = 'queued') AS runs_queued,
                     count(*) FILTER (WHERE status = 'running') AS runs_running,
                     count(*) FILTER (WHERE status = 'waiting') AS runs_waiting
              FROM executions WHERE status IN ('queued', 'running', 'waiting')) AS runs,
     LATERAL (SELECT min(d.due_at) AS dispatch_due FROM dispatches d
              WHERE d.due_at <= now.at AND (d.lease_until IS NULL OR d.lease_until <= now.at)
                AND EXISTS (SELECT 1 FROM instances i WHERE i.node_id = d.node_id AND i.status = 'live')) AS sending,
     LATERAL (SELECT count(*) AS nodes,
                     count(*) FILTER (WHERE EXISTS (SELECT 1 FROM instances i
                                                    WHERE i.node_id = n.node_id AND i.status <> 'gone')) AS nodes_there
              FROM nodes n) AS fleet
""")
