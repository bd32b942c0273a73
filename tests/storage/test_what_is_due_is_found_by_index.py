"""Looking for what is due reads what is due, not everything that waits."""

from collections.abc import Awaitable, Callable
from typing import Any

import sqlalchemy as sa

from controlplane.domain.seals import BEGINNING
from controlplane.storage import cases, dispatches, outbox, parked, pointing, resting, seals
from controlplane.storage.engine import Connection
from controlplane.storage.pointing import Left
from tests.services.store import Rows, Store

RUNS = """
INSERT INTO executions (execution_id, node_id, status, pending_approvals)
SELECT 'r' || n, 'node-1', 'waiting', 1 FROM generate_series(1, 3000) n;
INSERT INTO approvals (approval_id, execution_id, node_id, approval_request_id, round, status, on_expiry, requested_at,
                       expires_at)
SELECT 'apr_' || n, 'r' || n, 'node-1', 'a', 1, 'pending', 'cancel', now(), now() + interval '1 h'
FROM generate_series(1, 3000) n;
INSERT INTO deliveries (delivery_id, approval_id, execution_id, node_id, status, url, target, created_at, told_at,
                        due_at)
SELECT 'dlv_' || n, 'apr_' || n, 'r' || n, 'node-1', 'pending', 'http://a/', 'http://a:80', now(), now(),
       now() + interval '1 h'
FROM generate_series(1, 3000) n;
INSERT INTO parked (parked_id, sender, approval_request_id, decision, feedback, keys, received_at, expires_at)
SELECT 'prk_' || n, 'desk', 'p' || n, 'approved', '', '{}', now(), now() + interval '1 h'
FROM generate_series(1, 3000) n;
INSERT INTO nodes (node_id, version, reasoners, skills, registered_at, updated_at)
SELECT 'node-' || n, '1', '[]', '{}', now(), now() FROM generate_series(1, 50) n;
INSERT INTO instances (node_id, instance_id, base_url, version, reasoners, replay, fenced, status, lease_seconds,
                       lease_until, registered_at, seen_at, gone_at, gone_reason)
SELECT 'node-' || 1 + n % 50, 'i' || n, 'http://a/' || n, '1', '{}', true, true,
       CASE WHEN n > 50 THEN 'gone' ELSE 'live' END, 15, now(), now(), now(), CASE WHEN n > 50 THEN now() END,
       CASE WHEN n > 50 THEN 'lease' END
FROM generate_series(1, 200) n;
INSERT INTO executions (execution_id, node_id, status, dispatched, fence, instance_id, running_since, work_deadline)
SELECT 'd' || n, 'node-1', 'running', true, 1, 'i1', now(), now() + interval '1 h' FROM generate_series(1, 3000) n;
INSERT INTO dispatches (execution_id, node_id, kind, due_at, created_at, start_by)
SELECT 'd' || n, 'node-1', 'run', now() + interval '1 h', now(), now() + interval '1 h'
FROM generate_series(1, 3000) n;
ANALYZE;
"""
LOOKS: dict[str, Callable[[Connection], Awaitable[Any]]] = {
    "approvals_due": lambda conn: cases.lock_due(conn, 100),
    "deliveries_due": lambda conn: outbox.claim(conn, limit=100, held={}),
    "executions_out_of_time": lambda conn: cases.lock_out_of_time(conn, 100),
    "dispatches_unstarted": lambda conn: dispatches.unstarted(conn, 100),
    "parked_due": lambda conn: parked.take_expired(conn, 100),
}


class Explaining(Connection):
    """Explains the first statement instead of running it."""

    plan: Any = None

    async def rows(self, statement: Any, values: Any = None) -> Any:
        statement = getattr(statement, "sql", statement)
        compiled = statement.compile(dialect=self._sql.dialect, compile_kwargs={"render_postcompile": True})
        text, params = str(compiled), compiled.params | dict(values or {})
        order = compiled.positiontup or []
        result = await self._sql.exec_driver_sql("EXPLAIN (FORMAT JSON) " + text, tuple(params[name] for name in order))
        self.plan = result.scalar_one()
        return []


async def test_the_index_bounds_the_look(store: Store, rows: Rows):
    await rows.sql.execute(RUNS)
    for index, look in LOOKS.items():
        nodes = [node for node in walk(await plan_of(store, look)) if node.get("Index Name") == index]
        assert nodes, index
        assert all("<=" in node.get("Index Cond", "") for node in nodes), index


LEFT = Left("i1", "node-1", "http://a/1", "http://b")
# What is looked up by an equal value; none of these reads everything that waits either.
FOUND: dict[str, Callable[[Connection], Awaitable[Any]]] = {
    "executions_held": lambda conn: cases.lock_held_by_the_gone(conn, 100),
    "dispatches_due": lambda conn: dispatches.lock_due(conn, {"node-1": 5}),
    "deliveries_resting": lambda conn: resting.lock_resting(conn, "node-1", 100),
    "history_stream": lambda conn: seals.rows_after(conn, BEGINNING, 500),
    "approvals_calling": lambda conn: pointing.lock_pointing(conn, LEFT, 100),
}


async def test_what_the_gone_held_or_left_and_what_a_node_is_due_are_found_by_index(store: Store, rows: Rows):
    await rows.sql.execute(RUNS)
    for index, look in FOUND.items():
        assert index in {node.get("Index Name") for node in walk(await plan_of(store, look))}, index


async def plan_of(store: Store, look: Callable[[Connection], Awaitable[Any]]) -> Any:
    async with store.engine.connect() as sql:
        await sql.execute(sa.text("SET enable_seqscan = off"))
        conn = Explaining(sql)
        await look(conn)
    return conn.plan


def walk(plan: Any) -> list[dict[str, Any]]:
    """Every node of a plan."""
    if isinstance(plan, list):
        return [node for part in plan for node in walk(part)]
    if isinstance(plan, dict):
        return [plan, *(node for part in plan.values() for node in walk(part))]
    return []
