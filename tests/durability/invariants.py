"""What must hold in the database after anything: one query an invariant, which returns the rows that break it.

Asked at the end of every proof, when nothing is on its way any more; the server's own log is never read. Tampering
(I12) is found as far as history and state then contradict each other.
"""

from collections.abc import Iterable
from typing import Any

from tests.durability import invariants_of_dispatch
from tests.durability.invariant import Invariant

INVARIANTS = (
    Invariant(
        "I1",
        "a commit survives a crash of PostgreSQL",
        """
        SELECT name FROM pg_settings
        WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'off'
        """,
    ),
    Invariant(
        "I2",
        "one end an approval, and it is what history says",
        """
        SELECT a.approval_id FROM approvals a JOIN history h ON h.approval_id = a.approval_id AND h.settles
        WHERE h.type <> 'approval.' || a.status OR h.data ->> 'to' <> a.status
           OR (h.data ->> 'round')::int <> a.round
        """,
    ),
    Invariant(
        "I2",
        "what a webhook was answered is what stands",
        """
        SELECT a.approval_id FROM approvals a JOIN seen_webhooks s USING (approval_id)
        WHERE s.outcome ->> 'approval_status' <> a.status
        """,
    ),
    Invariant(
        "I3",
        "a person's answer is in time, and the system's expiry is not early",
        """
        SELECT a.approval_id FROM approvals a LEFT JOIN history h ON h.approval_id = a.approval_id AND h.settles
        WHERE (a.status IN ('approved', 'rejected', 'request_changes') AND a.decided_at >= a.expires_at)
           OR (h.actor_via = 'expiry' AND a.status = 'expired' AND a.decided_at < a.expires_at)
        """,
    ),
    Invariant(
        "I4",
        "nothing is pending past its deadline for more than 5 s",
        """
        SELECT approval_id FROM approvals
        WHERE status = 'pending' AND expires_at < clock_timestamp() - interval '5 s'
        """,
    ),
    Invariant(
        "I5",
        "final exactly when there is one settling history row",
        """
        SELECT a.approval_id FROM approvals a
        WHERE (SELECT count(*) FROM history h WHERE h.approval_id = a.approval_id AND h.settles)
              <> CASE WHEN a.status = 'pending' THEN 0 ELSE 1 END
        """,
    ),
    Invariant(
        "I5",
        "one delivery row for each end that is to be told, none for what is pending",
        """
        WITH leftovers AS (
            SELECT h.approval_id FROM history h
            WHERE h.settles AND h.type = 'approval.withdrawn' AND EXISTS (
                SELECT FROM history e WHERE e.xid = h.xid AND e.execution_id = h.execution_id
                AND e.actor_kind = 'agent' AND e.type IN ('execution.succeeded', 'execution.failed',
                    'execution.cancelled', 'execution.timeout'))
            AND NOT EXISTS (
                SELECT FROM history o WHERE o.xid = h.xid AND o.execution_id = h.execution_id AND o.settles
                AND o.type <> 'approval.withdrawn')
        )
        SELECT a.approval_id FROM approvals a LEFT JOIN leftovers l USING (approval_id)
        WHERE (SELECT count(*) FROM deliveries d WHERE d.approval_id = a.approval_id)
              <> CASE WHEN a.status <> 'pending' AND a.callback_url IS NOT NULL AND l.approval_id IS NULL
                      THEN 1 ELSE 0 END
        """,
    ),
    Invariant(
        "I6",
        "every delivery ends",
        "SELECT delivery_id FROM deliveries WHERE status NOT IN ('delivered', 'obsolete', 'dead')",
    ),
    Invariant(
        "I6",
        "delivered means that the receiver said so, and history has it",
        """
        SELECT d.delivery_id FROM deliveries d WHERE d.status = 'delivered' AND (
            d.last_status IS NULL OR d.last_status NOT BETWEEN 200 AND 299 OR d.attempts < 1 OR NOT EXISTS (
                SELECT FROM history h WHERE h.approval_id = d.approval_id AND h.type = 'delivery.delivered'))
        """,
    ),
    Invariant(
        "I7",
        "a delivery is written down as delivered once for each telling",
        """
        SELECT d.delivery_id FROM deliveries d JOIN history h
            ON h.approval_id = d.approval_id AND h.type = 'delivery.delivered'
        GROUP BY d.delivery_id, d.fence HAVING count(*) > d.fence
        """,
    ),
    Invariant(
        "I8",
        "every try took a fence of its own, and no end is held under a lease",
        """
        SELECT delivery_id FROM deliveries
        WHERE attempts > fence OR (status <> 'pending' AND lease_until IS NOT NULL)
        """,
    ),
    Invariant(
        "I9",
        "an execution goes only where the table lets it, from where it was",
        """
        WITH moves AS (
            SELECT execution_id, seq, data ->> 'from' AS was, data ->> 'to' AS now,
                   lag(data ->> 'to') OVER (PARTITION BY execution_id ORDER BY seq) AS before
            FROM history WHERE type LIKE 'execution.%' AND data ? 'from'
        )
        SELECT execution_id, seq FROM moves
        WHERE before <> was OR was IN ('succeeded', 'failed', 'cancelled', 'timeout')
           OR (was, now) NOT IN (('running', 'waiting'), ('waiting', 'running'),
               ('queued', 'running'), ('running', 'queued'),
               ('queued', 'succeeded'), ('queued', 'failed'), ('queued', 'cancelled'), ('queued', 'timeout'),
               ('running', 'succeeded'), ('running', 'failed'), ('running', 'cancelled'), ('running', 'timeout'),
               ('waiting', 'succeeded'), ('waiting', 'failed'), ('waiting', 'cancelled'), ('waiting', 'timeout'))
        """,
    ),
    Invariant(
        "I9",
        "an execution stands where history last put it",
        """
        SELECT e.execution_id FROM executions e JOIN LATERAL (
            SELECT data ->> 'to' AS now FROM history h
            WHERE h.execution_id = e.execution_id AND h.type LIKE 'execution.%' AND h.data ? 'from'
            ORDER BY seq DESC LIMIT 1) AS last ON true
        WHERE last.now <> e.status
        """,
    ),
    Invariant(
        "I10",
        "every row of history says who, and every approval that there is was asked by someone",
        """
        SELECT seq::text FROM history WHERE actor_name = '' OR actor_via = ''
        UNION ALL
        SELECT approval_id FROM approvals a WHERE NOT EXISTS (
            SELECT FROM history h WHERE h.approval_id = a.approval_id AND h.type = 'approval.requested')
        """,
    ),
    Invariant(
        "I11",
        "a webhook that decided is remembered, as the only one that took effect",
        """
        SELECT h.approval_id FROM history h WHERE h.settles AND h.actor_kind = 'sender' AND h.actor_via = 'webhook'
        AND h.type <> 'approval.withdrawn' AND NOT EXISTS (
            SELECT FROM seen_webhooks s WHERE s.approval_id = h.approval_id AND s.sender = h.actor_name
            AND (s.outcome ->> 'applied')::boolean)
        UNION ALL
        SELECT s.approval_id FROM seen_webhooks s JOIN history h ON h.approval_id = s.approval_id AND h.settles
        WHERE (s.outcome ->> 'applied')::boolean AND h.actor_name <> s.sender
        """,
    ),
    Invariant(
        "I18",
        "waiting exactly with something pending, and counted right",
        """
        SELECT e.execution_id FROM executions e JOIN LATERAL (
            SELECT count(*) AS pending FROM approvals a
            WHERE a.execution_id = e.execution_id AND a.status = 'pending') AS found ON true
        WHERE e.pending_approvals <> found.pending OR (e.status = 'waiting') <> (found.pending > 0)
        """,
    ),
)


async def broken(connection: Any) -> list[str]:
    """Each invariant that does not hold, with the first rows that break it; empty when all hold."""
    found: list[str] = []
    for invariant in (*INVARIANTS, *invariants_of_dispatch.INVARIANTS):
        rows = await connection.fetch(invariant.broken)
        if rows:
            found.append(f"{invariant.number} ({invariant.promise}): {len(rows)} rows, {[*map(tuple, rows[:5])]}")
    return found


async def settled(connection: Any) -> bool:
    """Nothing is on its way any more: every delivery has ended, and no agent has anything to be sent."""
    return not await connection.fetchval(
        """
        SELECT EXISTS (SELECT FROM deliveries WHERE status = 'pending')
            OR EXISTS (SELECT FROM dispatches WHERE due_at IS NOT NULL)
            OR EXISTS (SELECT FROM executions WHERE outcome_pending)
        """
    )


async def lost(connection: Any, acknowledged: Iterable[tuple[str, str]]) -> list[tuple[str, str, str | None]]:
    """The decisions that a sender was told are applied, and that do not stand so: (approval, told, stands).

    Args:
        connection: to the database.
        acknowledged: approval_id and decision of every answer `processed`.
    """
    rows = await connection.fetch("SELECT approval_id, status FROM approvals")
    stands = {row["approval_id"]: row["status"] for row in rows}
    return [(each, told, stands.get(each)) for each, told in acknowledged if stands.get(each) != told]
