"""Cases: lock an execution with its approvals, and write what the domain made of them in one statement.

Lock order everywhere: execution, its approvals by id, deliveries; a batch takes the executions that are free.
The execution's row is locked first and whole, so whatever follows is decided on what really stands.
"""

from collections.abc import Callable, Sequence
from typing import Any

import sqlalchemy as sa

from controlplane.domain.approvals import Approval
from controlplane.domain.cases import Case
from controlplane.domain.deliveries import target_of
from controlplane.domain.dispatching import Order
from controlplane.domain.events import Fact
from controlplane.domain.executions import Execution
from controlplane.domain.ids import DELIVERY_PREFIX
from controlplane.domain.nodes import InstanceStatus
from controlplane.storage import history
from controlplane.storage.clock import MOMENT
from controlplane.storage.engine import Connection
from controlplane.storage.reach import limits, reachable
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import APPROVAL_PENDING, approvals, executions, instances

NewId = Callable[[str], str]

_EXECUTION = columns(executions, Execution)
_APPROVAL = columns(approvals, Approval)


# What `_SAVE` writes of an execution beside its status, by the names of the struct.
_HELD = (
    "fence",
    "instance_id",
    "replay",
    "fenced",
    "proven",
    "stalls",
    "outcome_pending",
    "worked_seconds",
    "running_since",
    "work_deadline",
)


class LostUpdate(RuntimeError):
    """A row had changed under its lock: a bug in the lock order, never an answer to a caller."""


async def lock(conn: Connection, execution_id: str, *, request_id: str | None = None) -> Case | None:
    """Lock an execution and read it with its pending approvals and every round under a request id.

    The case's moment is the database's clock after the lock was had, so an answer that waited is judged by when
    it is applied.
    """
    found = await conn.row(_LOCK, {"execution_id": execution_id} | limits(conn))
    return await _load(conn, found, request_id=request_id) if found else None


async def lock_by_approval(conn: Connection, approval_id: str) -> Case | None:
    """Lock the execution of an approval and read it with that approval and all pending ones."""
    found = await conn.row(_LOCK_BY_APPROVAL, {"approval_id": approval_id} | limits(conn))
    return await _load(conn, found, approval_id=approval_id) if found else None


async def lock_all(conn: Connection, execution_ids: Sequence[str]) -> list[Case]:
    """Lock executions in order of their ids and read them with their pending approvals; unknown ones are left out."""
    found = await conn.rows(_LOCK_ALL, {"ids": list(execution_ids)} | limits(conn))
    return await _with_pending(conn, [to_struct(row, Execution) for row in found])


async def lock_due(conn: Connection, limit: int) -> list[Case]:
    """Lock the executions of up to `limit` approvals past their deadline, without those locked by others."""
    found = await conn.rows(_LOCK_DUE, {"limit": limit})
    return await _with_pending(conn, list({r.execution_id: to_struct(r, Execution) for r in found}.values()))


async def save(conn: Connection, changes: Sequence[tuple[Case, Case]], new_id: NewId) -> None:
    """Write what became of locked cases: executions, ended approvals, history and deliveries, in one statement.

    New approvals are inserted before (`storage.approvals.insert`), since they carry more than the rules know.

    Raises:
        LostUpdate: a row was not as it was read; the transaction must not be committed.
    """
    values = _Values(new_id)
    for before, after in changes:
        values.add(before, after)
    if values.empty:
        return
    row = await conn.row(_SAVE, values.binds())
    if row is None or (row.moved, row.ended) != (len(values.moved), len(values.ended)):
        raise LostUpdate(f"wrote {row} of {len(values.moved)} executions and {len(values.ended)} approvals")
    conn.changes.wrote = conn.changes.wrote or bool(values.facts)
    conn.changes.work = conn.changes.work or values.frees_or_fills_the_queue
    conn.changes.ended.extend(now.execution_id for was, now in values.moved if now.final and not was.final)
    conn.changes.settled.extend(a.approval_id for a in values.ended)
    conn.changes.due = conn.changes.due or bool(values.told)


async def lock_held_by_the_gone(conn: Connection, limit: int) -> list[Case]:
    """Lock up to `limit` executions whose instance is gone, without those locked by others."""
    found = await conn.rows(_LOCK_HELD_BY_THE_GONE, {"limit": limit})
    return await _with_pending(conn, [to_struct(row, Execution) for row in found])


async def lock_out_of_time(conn: Connection, limit: int) -> list[Case]:
    """Lock up to `limit` executions whose running time is used up, without those locked by others."""
    found = await conn.rows(_LOCK_OUT_OF_TIME, {"limit": limit})
    return await _with_pending(conn, [to_struct(row, Execution) for row in found])


async def _with_pending(conn: Connection, locked: list[Execution]) -> list[Case]:
    ids = [execution.execution_id for execution in locked]
    return _cases(locked, await conn.rows(_PENDING_OF, {"ids": ids})) if locked else []


async def _load(
    conn: Connection, found: sa.Row[Any], *, request_id: str | None = None, approval_id: str | None = None
) -> Case:
    execution = to_struct(found, Execution)
    binds = {"ids": [execution.execution_id], "request_id": request_id, "approval_id": approval_id}
    return _cases([execution], await conn.rows(_MEANT_AND_PENDING_OF, binds))[0]


def _cases(locked: list[Execution], rows: Sequence[sa.Row[Any]]) -> list[Case]:
    found: dict[str, list[Approval]] = {execution.execution_id: [] for execution in locked}
    for row in rows:
        if row.approval_id is not None:
            found[row.execution_id].append(to_struct(row, Approval))
    return [Case(execution=e, approvals=tuple(found[e.execution_id]), at=rows[0].at) for e in locked]


def _locking(where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """A lock on runs in reach: what is beyond is not even locked, so nobody waits there, or holds others up."""
    mine = reachable(executions.c.node_id, executions.c.started_by)
    return sa.select(*_EXECUTION).where(where, mine).with_for_update(key_share=True, of=executions)


def _loading(which: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """The approvals of locked executions, and the clock read once; one row without an approval where there is none."""
    clock = sa.select(MOMENT.label("at")).cte("clock").prefix_with("MATERIALIZED")
    mine = approvals.c.execution_id == sa.any_(bound_texts("ids"))
    joined = clock.outerjoin(approvals, sa.and_(mine, which))
    return sa.select(clock.c.at, *_APPROVAL).select_from(joined).order_by(approvals.c.approval_id)


# Built once: building one of these costs more than running it.
_LOCK = Statement(_locking(executions.c.execution_id == sa.bindparam("execution_id")))
_LOCK_BY_APPROVAL = Statement(
    _locking(
        executions.c.execution_id
        == sa.select(approvals.c.execution_id)
        .where(approvals.c.approval_id == sa.bindparam("approval_id"))
        .scalar_subquery()
    )
)
# What another sweeper holds is passed over before the limit counts, so that two of them share a crowd of deadlines.
# Nothing is waited for here, so the order of the locks is free.
_LOCK_DUE = Statement(
    sa.select(*_EXECUTION)
    .select_from(approvals.join(executions, approvals.c.execution_id == executions.c.execution_id))
    .where(APPROVAL_PENDING, approvals.c.expires_at <= MOMENT)
    .order_by(approvals.c.expires_at)
    .limit(sa.bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=executions)
)
_LOCK_ALL = Statement(
    _locking(executions.c.execution_id == sa.any_(bound_texts("ids"))).order_by(executions.c.execution_id)
)
_LOCK_HELD_BY_THE_GONE = Statement(
    sa.select(*_EXECUTION)
    .select_from(executions.join(instances, executions.c.instance_id == instances.c.instance_id))
    .where(
        executions.c.instance_id.is_not(None),
        instances.c.status == sa.literal_column(f"'{InstanceStatus.GONE}'"),
        sa.or_(executions.c.ended_at.is_(None), executions.c.outcome_pending),
    )
    .limit(sa.bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True, of=executions)
)
_LOCK_OUT_OF_TIME = Statement(
    sa.select(*_EXECUTION)
    .where(executions.c.work_deadline <= MOMENT)
    .order_by(executions.c.work_deadline)
    .limit(sa.bindparam("limit"))
    .with_for_update(key_share=True, skip_locked=True)
)
_PENDING_OF = Statement(_loading(APPROVAL_PENDING))
_MEANT_AND_PENDING_OF = Statement(
    _loading(
        sa.or_(
            APPROVAL_PENDING,
            approvals.c.approval_request_id == sa.bindparam("request_id"),
            approvals.c.approval_id == sa.bindparam("approval_id"),
        )
    )
)


class _Values:
    """The arrays that `_SAVE` unnests, gathered from any number of cases."""

    def __init__(self, new_id: NewId) -> None:
        self._new_id = new_id
        self.moved: list[tuple[Execution, Execution]] = []
        self.ended: list[Approval] = []
        self.facts: list[Fact] = []
        self.told: list[Approval] = []
        self._orders: list[tuple[str, Order, Any]] = []
        self._taken: list[bool] = []
        self._at: list[Any] = []
        self._told_at: list[Any] = []

    def add(self, before: Case, after: Case) -> None:
        """Take over what differs between a case as it was locked and as it must be."""
        if before.execution != after.execution:
            self.moved.append((before.execution, after.execution))
            self._at.append(after.at)
        if after.order is not None:
            self._orders.append((after.execution.execution_id, after.order, after.at))
            # What is sent to another instance was not taken by that alone: of the last one there may be no sign.
            self._taken.append(after.order is not Order.RUN or after.execution.proven)
        pending = {a.approval_id for a in before.approvals if not a.final}
        new = {a.approval_id for a in after.approvals} - {a.approval_id for a in before.approvals}
        self.ended += [a for a in after.approvals if a.final and a.approval_id in pending | new]
        self.facts += after.facts
        told = [a for a in after.approvals if a.approval_id in after.tellings and a.callback_url]
        self.told += told
        self._told_at += [after.at] * len(told)

    @property
    def empty(self) -> bool:
        """True when nothing is to be written."""
        return not (self.facts or self.moved or self._orders)

    @property
    def frees_or_fills_the_queue(self) -> bool:
        """True when something may be dispatched now that could not before."""
        left = any(was.running_since and not now.running_since and now.dispatched for was, now in self.moved)
        return left or any(order is not Order.NOTHING for _, order, _ in self._orders)

    def binds(self) -> dict[str, Any]:
        """The statement's parameters."""
        after = [now for _, now in self.moved]
        return {f"e_{field}": [getattr(run, field) for run in after] for field in _HELD} | {
            "o_id": [execution_id for execution_id, _, _ in self._orders],
            "o_kind": [None if order is Order.NOTHING else order for _, order, _ in self._orders],
            "o_at": [at for _, _, at in self._orders],
            "o_taken": self._taken,
            "e_id": [was.execution_id for was, _ in self.moved],
            "e_was": [was.status for was, _ in self.moved],
            "e_was_pending": [was.pending_approvals for was, _ in self.moved],
            "e_was_fence": [was.fence for was, _ in self.moved],
            "e_status": [run.status for run in after],
            "e_reason": [run.status_reason for run in after],
            "e_pending": [run.pending_approvals for run in after],
            "e_ended": [run.ended_at for run in after],
            "e_at": self._at,
            "a_id": [a.approval_id for a in self.ended],
            "a_status": [a.status for a in self.ended],
            "a_at": [a.decided_at for a in self.ended],
            "a_feedback": [a.feedback for a in self.ended],
            "a_response": [a.response.decode() if a.response is not None else None for a in self.ended],
            "a_new_status": [a.new_status for a in self.ended],
            "facts": history.encoded(self.facts),
            "d_id": [self._new_id(DELIVERY_PREFIX) for _ in self.told],
            "d_approval": [a.approval_id for a in self.told],
            "d_execution": [a.execution_id for a in self.told],
            "d_node": [a.node_id for a in self.told],
            "d_url": [a.callback_url for a in self.told],
            "d_target": [target_of(a.callback_url or "") for a in self.told],
            "d_secret": [a.callback_secret for a in self.told],
            "d_at": self._told_at,
        }


_CHANGES = """
WITH moved AS (
    UPDATE executions e
    SET status = v.status, status_reason = v.reason, pending_approvals = v.pending,
        ended_at = v.ended_at, updated_at = v.at,
        fence = v.fence, instance_id = v.instance_id, replay = v.replay, fenced = v.fenced, proven = v.proven,
        stalls = v.stalls, outcome_pending = v.outcome_pending, worked_seconds = v.worked_seconds,
        running_since = v.running_since, work_deadline = v.work_deadline,
        started_at = coalesce(e.started_at, v.running_since)
    FROM unnest(CAST(:e_id AS text[]), CAST(:e_was AS text[]), CAST(:e_was_pending AS int[]),
                CAST(:e_was_fence AS bigint[]),
                CAST(:e_status AS text[]), CAST(:e_reason AS text[]), CAST(:e_pending AS int[]),
                CAST(:e_ended AS timestamptz[]), CAST(:e_at AS timestamptz[]),
                CAST(:e_fence AS bigint[]), CAST(:e_instance_id AS text[]), CAST(:e_replay AS boolean[]),
                CAST(:e_fenced AS boolean[]), CAST(:e_proven AS boolean[]), CAST(:e_stalls AS int[]),
                CAST(:e_outcome_pending AS boolean[]), CAST(:e_worked_seconds AS double precision[]),
                CAST(:e_running_since AS timestamptz[]), CAST(:e_work_deadline AS timestamptz[]))
        AS v(execution_id, was, was_pending, was_fence, status, reason, pending, ended_at, at,
             fence, instance_id, replay, fenced, proven, stalls, outcome_pending, worked_seconds,
             running_since, work_deadline)
    WHERE e.execution_id = v.execution_id AND e.status = v.was AND e.pending_approvals = v.was_pending
      AND e.fence = v.was_fence
    RETURNING e.execution_id
), ended AS (
    UPDATE approvals a
    SET status = v.status, decided_at = v.at, feedback = v.feedback, response = CAST(v.response AS json),
        new_status = v.new_status
    FROM unnest(CAST(:a_id AS text[]), CAST(:a_status AS text[]), CAST(:a_at AS timestamptz[]),
                CAST(:a_feedback AS text[]), CAST(:a_response AS text[]), CAST(:a_new_status AS text[]))
        AS v(approval_id, status, at, feedback, response, new_status)
    WHERE a.approval_id = v.approval_id AND a.status = 'pending'
    RETURNING a.approval_id
), told AS (
    INSERT INTO deliveries (delivery_id, approval_id, execution_id, node_id, status, url, target, secret,
                            created_at, told_at, due_at)
    SELECT v.delivery_id, v.approval_id, v.execution_id, v.node_id, 'pending', v.url, v.target, v.secret,
           v.at, v.at, v.at
    FROM unnest(CAST(:d_id AS text[]), CAST(:d_approval AS text[]), CAST(:d_execution AS text[]),
                CAST(:d_node AS text[]), CAST(:d_url AS text[]), CAST(:d_target AS text[]),
                CAST(:d_secret AS text[]), CAST(:d_at AS timestamptz[]))
        AS v(delivery_id, approval_id, execution_id, node_id, url, target, secret, at)
), places AS MATERIALIZED (
    SELECT execution_id FROM dispatches WHERE execution_id = ANY(CAST(:o_id AS text[]))
    ORDER BY execution_id FOR UPDATE
), ordered AS (
    UPDATE dispatches d
    SET kind = coalesce(v.kind, d.kind), due_at = CASE WHEN v.kind IS NOT NULL THEN v.at END,
        claim = d.claim + 1, lease_until = NULL, attempts = 0, taken = d.taken OR v.taken
    FROM unnest(CAST(:o_id AS text[]), CAST(:o_kind AS text[]), CAST(:o_at AS timestamptz[]),
                CAST(:o_taken AS boolean[]))
        AS v(execution_id, kind, at, taken)
    JOIN places USING (execution_id)
    WHERE d.execution_id = v.execution_id
), recorded AS (
"""
_COUNTS = """
)
SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM ended) AS ended
"""
_SAVE = Statement(sa.text(_CHANGES + history.RECORD + _COUNTS))
