"""What must hold of runs that are given to agents: as in `invariants`, one query each for the rows that break it."""

from tests.durability.invariant import Invariant

INVARIANTS = (
    Invariant(
        "D1",
        "fences rise by one with each dispatch, and a run bears its last",
        """
        WITH given AS (
            SELECT execution_id, (data ->> 'fence')::bigint AS fence,
                   row_number() OVER (PARTITION BY execution_id ORDER BY seq) AS place
            FROM history WHERE type = 'execution.dispatched'
        )
        SELECT execution_id, fence FROM given WHERE fence <> place
        UNION ALL
        SELECT e.execution_id, e.fence FROM executions e
        WHERE e.fence <> (SELECT count(*) FROM given g WHERE g.execution_id = e.execution_id)
        """,
    ),
    Invariant(
        "D2",
        "whoever holds a run was given it under its fence",
        """
        SELECT e.execution_id FROM executions e WHERE e.instance_id IS NOT NULL AND NOT EXISTS (
            SELECT FROM history h WHERE h.execution_id = e.execution_id AND h.type = 'execution.dispatched'
            AND (h.data ->> 'fence')::bigint = e.fence AND h.data ->> 'instance_id' = e.instance_id)
        """,
    ),
    Invariant(
        "D2",
        "a run is released once a fence, from whoever had it",
        """
        SELECT r.execution_id, r.seq FROM history r WHERE r.type = 'execution.released' AND (
            NOT EXISTS (
                SELECT FROM history g WHERE g.execution_id = r.execution_id AND g.type = 'execution.dispatched'
                AND g.seq < r.seq AND g.data ->> 'fence' = r.data ->> 'fence'
                AND g.data ->> 'instance_id' = r.data ->> 'instance_id')
            OR EXISTS (
                SELECT FROM history o WHERE o.execution_id = r.execution_id AND o.type = 'execution.released'
                AND o.seq <> r.seq AND o.data ->> 'fence' = r.data ->> 'fence'))
        """,
    ),
    Invariant(
        "D3",
        "what an agent has begun is given to another one only after it was released",
        """
        WITH given AS (
            SELECT execution_id, data ->> 'fence' AS fence, seq,
                   lead(seq) OVER (PARTITION BY execution_id ORDER BY seq) AS next
            FROM history WHERE type = 'execution.dispatched'
        ), since AS (
            SELECT g.execution_id, g.fence, g.next,
                   bool_or(h.type IN ('approval.requested', 'execution.step', 'execution.note')
                           AND h.actor_kind = 'agent') AS begun,
                   bool_or(h.type = 'execution.released' AND h.data ->> 'fence' = g.fence) AS released
            FROM given g JOIN history h ON h.execution_id = g.execution_id AND h.seq > g.seq AND h.seq < g.next
            GROUP BY g.execution_id, g.fence, g.next
        )
        SELECT execution_id, fence FROM since WHERE begun AND NOT released
        """,
    ),
    Invariant(
        "D4",
        "what is not over is held by an instance that is there, or is queued, or waits for an answer",
        """
        SELECT e.execution_id FROM executions e LEFT JOIN dispatches d USING (execution_id)
        WHERE e.dispatched AND (e.replay OR e.fence = 0) AND (e.ended_at IS NULL OR e.outcome_pending)
        AND (d.kind IS DISTINCT FROM 'run' OR d.due_at IS NULL)
        AND e.status <> 'waiting' AND (e.status = 'queued' OR NOT EXISTS (
            SELECT FROM instances i WHERE i.instance_id = e.instance_id AND i.status <> 'gone'))
        """,
    ),
    Invariant(
        "D5",
        "the code of every run that ended has seen its end",
        "SELECT execution_id FROM executions WHERE outcome_pending",
    ),
    Invariant(
        "D6",
        "nothing of what is over is sent any more",
        """
        SELECT d.execution_id FROM dispatches d JOIN executions e USING (execution_id)
        WHERE e.ended_at IS NOT NULL AND NOT e.outcome_pending AND d.due_at IS NOT NULL
        """,
    ),
    Invariant(
        "D7",
        "steps count up without a gap, and history has each once",
        """
        WITH kept AS (
            SELECT execution_id, count(*) AS steps, max(position) AS last FROM steps GROUP BY execution_id
        ), told AS (
            SELECT execution_id, count(*) AS facts, count(DISTINCT data ->> 'position') AS places FROM history
            WHERE type = 'execution.step' GROUP BY execution_id
        )
        SELECT execution_id FROM kept FULL JOIN told USING (execution_id)
        WHERE (steps = last AND steps = facts AND facts = places) IS NOT TRUE
        """,
    ),
    Invariant(
        "D8",
        "a run's time is counted exactly while an agent runs it",
        """
        SELECT execution_id FROM executions WHERE dispatched
        AND ((running_since IS NOT NULL) <> (status = 'running' AND instance_id IS NOT NULL) OR worked_seconds < 0)
        """,
    ),
    Invariant(
        "D9",
        "no run works on for more than 5 s past its limit, and none is ended before",
        """
        SELECT execution_id FROM executions WHERE work_deadline < clock_timestamp() - interval '5 s'
        UNION ALL
        SELECT execution_id FROM executions
        WHERE status = 'timeout' AND status_reason = 'execution_timeout' AND worked_seconds < limit_seconds
        """,
    ),
)
