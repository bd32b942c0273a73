"""The dispatch queue: claim what is due for nodes that are there, settle what was tried.

A place in the queue is only changed by whoever holds the lock of its execution, save that a try which arrived is
settled under its claim alone. Nodes are locked before executions, so that a node's limit holds on all replicas.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.dispatching import LEASE, DispatchKind
from controlplane.domain.nodes import Instance, InstanceStatus
from controlplane.storage.allowances import allowed_to
from controlplane.storage.clock import MOMENT
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import dispatches, executions, instances, nodes, steps

_FREE = sa.or_(dispatches.c.lease_until.is_(None), dispatches.c.lease_until <= MOMENT)
_DUE = sa.and_(dispatches.c.due_at <= MOMENT, _FREE)


class Hungry(Struct, frozen=True):
    """A node with something due, how much it may run at once (None: the server's own limit), and its skills.

    `allow` is what its own key lets be called.
    """

    node_id: str
    max_concurrent: int | None
    skills: frozenset[str]
    allow: tuple[str, ...]


class Due(Struct, frozen=True, kw_only=True):
    """A place in the queue as it stands under its execution's lock, with what a dispatch carries.

    `written`: whoever claimed it before began to write to the agent, and was not heard of again.
    """

    execution_id: str
    kind: DispatchKind
    attempts: int
    claim: int
    taken: bool
    written: bool
    start_by: datetime
    last_instance_id: str | None
    reasoner: str | None
    input: bytes | None
    run_id: str | None
    parent_execution_id: str | None
    steps: int


class Taking(Struct, frozen=True):
    """A place that is claimed for an instance; None: looked at, and left for a while with the reason why."""

    execution_id: str
    instance_id: str | None
    wait_seconds: float = 0.0
    error: str | None = None


class Settled(Struct, frozen=True):
    """What a try came to: due again at `retry_in` seconds, or out of the queue (None)."""

    execution_id: str
    claim: int
    retry_in: float | None
    status: int | None
    error: str | None


async def enqueue(conn: Connection, execution_id: str, node_id: str, start_within: float) -> None:
    """Put a new execution into the queue, due now; `start_within` seconds an agent must have been found for it."""
    now = sa.func.clock_timestamp()
    await conn.run(
        sa.insert(dispatches).values(
            execution_id=execution_id,
            node_id=node_id,
            kind=DispatchKind.RUN,
            due_at=now,
            created_at=now,
            start_by=now + sa.func.make_interval(0, 0, 0, 0, 0, 0, start_within),
        )
    )
    conn.changes.work = True


async def is_full(conn: Connection, node_id: str, limit: int) -> bool:
    """Whether `limit` runs wait for this node already."""
    row = await conn.row(_WAITING_BEYOND, {"node_id": node_id, "limit": limit})
    return row is not None


async def wake(conn: Connection, node_id: str) -> None:
    """Make due now what waits for another try at this node: an instance has come."""
    await conn.run(_WAKE, {"node_id": node_id})
    conn.changes.work = True


async def lock_hungry(conn: Connection, limit: int, *, concurrency: int) -> list[Hungry]:
    """Lock nodes that have an instance with something due that there is room for.

    Those that another process serves now are left out. `concurrency` is how many runs a node works on at once where
    its registration names no number.
    """
    binds = {"limit": limit, "concurrency": concurrency}
    return [to_struct(row, Hungry) for row in await conn.rows(_LOCK_HUNGRY, binds)]


async def fleet(conn: Connection, node_ids: Sequence[str]) -> list[Instance]:
    """The instances of these nodes that are there, live or draining."""
    return [to_struct(row, Instance) for row in await conn.rows(_FLEET, {"ids": list(node_ids)})]


async def at_work(conn: Connection, instance_ids: Sequence[str]) -> dict[str, int]:
    """How many runs each instance works on; waiting ones do not count."""
    return {row.instance_id: row.runs for row in await conn.rows(_AT_WORK, {"ids": list(instance_ids)})}


async def lock_due(conn: Connection, rooms: Mapping[str, int]) -> list[str]:
    """Lock executions that are due at these nodes, as many as each has room for.

    Ends to be told need no room, nor do runs that no live instance serves: these are only to be put off.
    """
    binds = {"nodes": list(rooms), "rooms": list(rooms.values())}
    return [row.execution_id for row in await conn.rows(_LOCK_DUE, binds)]


async def due(conn: Connection, execution_ids: Sequence[str]) -> list[Due]:
    """Those places of locked executions that are still due."""
    return [to_struct(row, Due) for row in await conn.rows(_STILL_DUE, {"ids": list(execution_ids)})]


async def unstarted(conn: Connection, limit: int) -> list[str]:
    """Executions that nobody took in the time they were given, and that nobody is being asked to take now."""
    return [row.execution_id for row in await conn.rows(_UNSTARTED, {"limit": limit})]


async def last_errors(conn: Connection, execution_ids: Sequence[str]) -> dict[str, str | None]:
    """Why the last try failed at those of these locked executions that are still unstarted."""
    rows = await conn.rows(_STILL_UNSTARTED, {"ids": list(execution_ids)})
    return {row.execution_id: row.last_error for row in rows}


async def take(conn: Connection, taking: Sequence[Taking]) -> None:
    """Claim places under a lease and a new claim, or leave them for a while."""
    binds = {
        "ids": [one.execution_id for one in taking],
        "instances": [one.instance_id for one in taking],
        "waits": [one.wait_seconds for one in taking],
        "errors": [one.error for one in taking],
        "lease": LEASE,
    }
    await conn.run(_TAKE, binds)


async def mark_writing(conn: Connection, execution_id: str, claim: int) -> bool:
    """Keep that a dispatch is about to be written: from now on its agent may have it. False: it was taken over."""
    return await conn.run(_MARK_WRITING, {"id": execution_id, "holds": claim}) == 1


async def held(conn: Connection, claims: Mapping[str, int]) -> set[str]:
    """Those executions whose place is still under this claim; they are locked."""
    rows = await conn.rows(_HELD, {"ids": list(claims), "claims": list(claims.values())})
    return {row.execution_id for row in rows}


async def settle(conn: Connection, settled: Sequence[Settled]) -> None:
    """Write what tries came to, where the claim still holds."""
    binds = {
        "ids": [one.execution_id for one in settled],
        "claims": [one.claim for one in settled],
        "retries": [one.retry_in for one in settled],
        "codes": [one.status for one in settled],
        "errors": [one.error for one in settled],
    }
    await conn.run(_SETTLE, binds)


async def next_due_in(conn: Connection) -> float | None:
    """Seconds until something is due at a node that has an instance; below zero when overdue, None for nothing."""
    row = await conn.row(_NEXT_DUE_IN)
    return None if row is None or row.seconds is None else float(row.seconds)


_THERE = instances.c.status.in_(
    [sa.literal_column(f"'{status}'") for status in (InstanceStatus.LIVE, InstanceStatus.DRAINING)]
)
_AT_WORK_NOW = sa.and_(executions.c.running_since.is_not(None), executions.c.ended_at.is_(None))
_UNSTARTED_NOW = sa.and_(
    dispatches.c.due_at.is_not(None), sa.not_(dispatches.c.taken), dispatches.c.start_by <= MOMENT, _FREE
)
# Built once: building one of these costs more than running it.
_WAITING_BEYOND = Statement(
    sa.select(sa.literal(1))
    .where(dispatches.c.node_id == sa.bindparam("node_id"), dispatches.c.due_at.is_not(None))
    .offset(sa.bindparam("limit") - 1)
    .limit(1)
)
# Places that others hold are passed over: whoever does is about to look for an instance.
_WAKE = Statement(
    sa.update(dispatches)
    .where(
        dispatches.c.execution_id.in_(
            sa.select(dispatches.c.execution_id)
            .where(
                dispatches.c.node_id == sa.bindparam("node_id"),
                dispatches.c.due_at > MOMENT,
                dispatches.c.lease_until.is_(None),
            )
            .with_for_update(skip_locked=True)
        )
    )
    .values(due_at=MOMENT)
)
# Nodes that have all they may work on are left out, or a crowd of them would hide those behind the limit.
_LOCK_HUNGRY = Statement(
    sa.select(nodes.c.node_id, nodes.c.max_concurrent, nodes.c.skills, allowed_to(nodes.c.node_id).label("allow"))
    .where(
        sa.exists().where(instances.c.node_id == nodes.c.node_id, _THERE),
        sa.exists().where(dispatches.c.node_id == nodes.c.node_id, _DUE),
        sa.or_(
            sa.exists().where(dispatches.c.node_id == nodes.c.node_id, _DUE, dispatches.c.kind == DispatchKind.CANCEL),
            sa.select(sa.func.count())
            .select_from(executions.join(instances, executions.c.instance_id == instances.c.instance_id))
            .where(instances.c.node_id == nodes.c.node_id, _THERE, _AT_WORK_NOW)
            .scalar_subquery()
            < sa.func.coalesce(nodes.c.max_concurrent, sa.bindparam("concurrency", type_=sa.Integer)),
        ),
    )
    .limit(sa.bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=nodes)
)
_FLEET = Statement(
    sa.select(*columns(instances, Instance))
    .where(instances.c.node_id == sa.any_(bound_texts("ids")), _THERE)
    .order_by(instances.c.instance_id)
)
_AT_WORK = Statement(
    sa.select(executions.c.instance_id, sa.func.count().label("runs"))
    .where(executions.c.instance_id == sa.any_(bound_texts("ids")), _AT_WORK_NOW)
    .group_by(executions.c.instance_id)
)
_LOCK_DUE = Statement(
    sa.text("""
SELECT e.execution_id
FROM unnest(CAST(:nodes AS text[]), CAST(:rooms AS int[])) AS n(node_id, room)
CROSS JOIN LATERAL (
    (SELECT d.execution_id FROM dispatches d JOIN executions x USING (execution_id)
     WHERE d.node_id = n.node_id AND d.kind = 'run' AND d.due_at <= (SELECT clock_timestamp())
       AND (d.lease_until IS NULL OR d.lease_until <= (SELECT clock_timestamp()))
       AND EXISTS (SELECT FROM instances i
                   WHERE i.node_id = n.node_id AND i.status = 'live' AND x.reasoner = ANY(i.reasoners))
     ORDER BY d.due_at LIMIT n.room)
    UNION ALL
    (SELECT d.execution_id FROM dispatches d JOIN executions x USING (execution_id)
     WHERE d.node_id = n.node_id AND d.kind = 'run' AND d.due_at <= (SELECT clock_timestamp())
       AND (d.lease_until IS NULL OR d.lease_until <= (SELECT clock_timestamp()))
       AND NOT EXISTS (SELECT FROM instances i
                       WHERE i.node_id = n.node_id AND i.status = 'live' AND x.reasoner = ANY(i.reasoners))
     ORDER BY d.due_at LIMIT 64)
    UNION ALL
    (SELECT d.execution_id FROM dispatches d
     WHERE d.node_id = n.node_id AND d.kind = 'cancel' AND d.due_at <= (SELECT clock_timestamp())
       AND (d.lease_until IS NULL OR d.lease_until <= (SELECT clock_timestamp()))
     ORDER BY d.due_at LIMIT 64)
) AS d
JOIN executions e ON e.execution_id = d.execution_id
FOR NO KEY UPDATE OF e SKIP LOCKED
""")
)
_STILL_DUE = Statement(
    sa.select(
        *(dispatches.c[n] for n in ("execution_id", "kind", "attempts", "claim", "taken", "start_by")),
        (dispatches.c.writing_claim == dispatches.c.claim).is_(sa.true()).label("written"),
        dispatches.c.last_instance_id,
        *(executions.c[n] for n in ("reasoner", "input", "run_id", "parent_execution_id")),
        sa.select(sa.func.count())
        .where(steps.c.execution_id == dispatches.c.execution_id)
        .scalar_subquery()
        .label("steps"),
    )
    .select_from(dispatches.join(executions, executions.c.execution_id == dispatches.c.execution_id))
    .where(dispatches.c.execution_id == sa.any_(bound_texts("ids")), _DUE)
    .order_by(dispatches.c.due_at, dispatches.c.execution_id)
)
_UNSTARTED = Statement(
    sa.select(dispatches.c.execution_id)
    .where(_UNSTARTED_NOW)
    .order_by(dispatches.c.start_by)
    .limit(sa.bindparam("limit"))
)
_STILL_UNSTARTED = Statement(
    sa.select(dispatches.c.execution_id, dispatches.c.last_error).where(
        dispatches.c.execution_id == sa.any_(bound_texts("ids")), _UNSTARTED_NOW
    )
)
_MARK_WRITING = Statement(
    sa.update(dispatches)
    .where(dispatches.c.execution_id == sa.bindparam("id"), dispatches.c.claim == sa.bindparam("holds"))
    .values(writing_claim=sa.bindparam("holds"))
)
_TAKE = Statement(
    sa.text("""
WITH locked AS MATERIALIZED (
    SELECT execution_id FROM dispatches WHERE execution_id = ANY(CAST(:ids AS text[]))
    ORDER BY execution_id FOR UPDATE
)
UPDATE dispatches d
SET claim = d.claim + 1,
    lease_until = CASE WHEN t.instance_id IS NULL THEN NULL ELSE clock_timestamp() + CAST(:lease AS interval) END,
    attempts = d.attempts + CASE WHEN t.instance_id IS NULL THEN 0 ELSE 1 END,
    last_attempt_at = CASE WHEN t.instance_id IS NULL THEN d.last_attempt_at ELSE clock_timestamp() END,
    last_instance_id = coalesce(t.instance_id, d.last_instance_id),
    last_error = coalesce(t.error, d.last_error),
    due_at = CASE WHEN t.instance_id IS NULL THEN clock_timestamp() + make_interval(secs => t.wait_seconds)
                  ELSE d.due_at END
FROM unnest(CAST(:ids AS text[]), CAST(:instances AS text[]), CAST(:waits AS double precision[]),
            CAST(:errors AS text[])) AS t(execution_id, instance_id, wait_seconds, error)
JOIN locked USING (execution_id)
WHERE d.execution_id = t.execution_id
""")
)
_HELD = Statement(
    sa.text("""
SELECT d.execution_id
FROM dispatches d
JOIN unnest(CAST(:ids AS text[]), CAST(:claims AS bigint[])) AS t(execution_id, claim) USING (execution_id, claim)
""")
)
# In order of their ids, as wherever several places are written.
_SETTLE = Statement(
    sa.text("""
WITH locked AS MATERIALIZED (
    SELECT execution_id FROM dispatches WHERE execution_id = ANY(CAST(:ids AS text[]))
    ORDER BY execution_id FOR UPDATE
)
UPDATE dispatches d
SET due_at = CASE WHEN t.retry_in IS NULL THEN NULL ELSE clock_timestamp() + make_interval(secs => t.retry_in) END,
    lease_until = NULL, last_status = t.status, last_error = t.error,
    taken = d.taken OR t.retry_in IS NULL
FROM unnest(CAST(:ids AS text[]), CAST(:claims AS bigint[]), CAST(:retries AS double precision[]),
            CAST(:codes AS int[]), CAST(:errors AS text[])) AS t(execution_id, claim, retry_in, status, error)
JOIN locked USING (execution_id)
WHERE d.execution_id = t.execution_id AND d.claim = t.claim
""")
)
_NEXT_DUE_IN = Statement(
    sa.text("""
SELECT extract(epoch FROM min(d.due_at) - clock_timestamp()) AS seconds
FROM nodes n
CROSS JOIN LATERAL (
    SELECT due_at FROM dispatches d
    WHERE d.node_id = n.node_id AND d.due_at IS NOT NULL
      AND (d.lease_until IS NULL OR d.lease_until <= (SELECT clock_timestamp()))
    ORDER BY d.due_at LIMIT 1
) AS d
WHERE EXISTS (SELECT FROM instances i WHERE i.node_id = n.node_id AND i.status IN ('live', 'draining'))
""")
)
