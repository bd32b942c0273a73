"""Executions: those that their own programs start, and what every agent says of its run."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain import cases as rules
from controlplane.domain.cases import Case
from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.errors import ExecutionExists, ExecutionNotFound
from controlplane.domain.events import Actor, Fact, FactType, acting_for
from controlplane.domain.executions import (
    CANCELLED_BY_OPERATOR,
    FINAL_EXECUTION,
    HANDED_BACK,
    Execution,
    ExecutionStatus,
    check_fence,
)
from controlplane.domain.runs import prove as proven
from controlplane.domain.runs import release
from controlplane.services.approvals import lock_execution
from controlplane.storage import cases, deliveries, executions, history
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection
from controlplane.storage.executions import Note, Run, Starting


class Report(Struct, frozen=True, kw_only=True):
    """What an agent says of its run; `result` is JSON as received.

    `shutdown` marks the word `cancelled` of a program that is being stopped: it hands the run back.
    """

    status: ExecutionStatus
    result: bytes | None = None
    error: str | None = None
    reason: str | None = None
    shutdown: bool = False


async def start(conn: Connection, starting: Starting, actor: Actor) -> tuple[Run, bool]:
    """Start an execution, or return the one that has this id already; True when it is new.

    Raises:
        ExecutionExists: another node owns an execution with this id, whether the caller sees that one or not.
    """
    new = await executions.start(conn, starting)
    run = await executions.get(conn, starting.execution_id)
    if run is None or run.node_id != starting.node_id:
        raise ExecutionExists
    if new:
        data = {"to": run.status, "reasoner": run.reasoner}
        await history.record(conn, _about(run, FactType.EXECUTION_CREATED, actor, data))
    return run, new


async def report(  # a report is what it says, and who says it under which fence
    conn: Connection, execution_id: str, told: Report, *, actor: Actor, new_id: NewId, fence: int | None = None
) -> Run:
    """Take an agent's report: an end is kept with its result and makes undelivered callbacks obsolete.

    A final status stays whatever is reported after it; the result is stored all the same, and the first one stands.

    Raises:
        ExecutionNotFound: no such execution.
        StaleInstance: another dispatch took the run over.
    """
    case = await lock_current(conn, execution_id, fence, new_id)
    actor = acting_for(actor, case.execution.node_id)
    if told.status not in FINAL_EXECUTION:
        await prove(conn, case, new_id)
        await executions.touch(conn, execution_id)
        return await look(conn, execution_id)
    if told.shutdown and await _is_handed_back(conn, case):
        await cases.save(conn, [(case, release(case, HANDED_BACK, actor))], new_id)
        return await look(conn, execution_id)
    await cases.save(conn, [(case, rules.report(case, told.status, actor, told.reason))], new_id)
    kept = await executions.keep_outcome(conn, execution_id, told.result, told.error)
    if kept and case.execution.final:
        data = {"status": case.execution.status, "reported": told.status}
        await history.record(conn, rules.about_run(case.execution, FactType.EXECUTION_RESULT, actor, data))
    await _end_deliveries(conn, case.execution, actor)
    return await look(conn, execution_id)


async def lock_current(conn: Connection, execution_id: str, fence: int | None, new_id: NewId) -> Case:
    """Lock an execution for a caller that must be its present holder.

    Raises:
        ExecutionNotFound: no such execution.
        StaleInstance: as `domain.executions.check_fence`.
    """
    case = await lock_execution(conn, execution_id, new_id)
    check_fence(case.execution, fence)
    return case


async def prove(conn: Connection, case: Case, new_id: NewId) -> Case:
    """Keep that a run's holder gave a sign; written where that is news."""
    after = proven(case)
    await cases.save(conn, [(case, after)], new_id)
    return replace(after, facts=(), tellings=(), order=None)


async def _is_handed_back(conn: Connection, case: Case) -> bool:
    """A stopped program's word is no end while the run waits, or has an answer that its code has not been told."""
    if case.execution.final:
        return False
    return bool(case.pending()) or await deliveries.any_pending(conn, case.execution.execution_id)


async def cancel(conn: Connection, execution_id: str, reason: str | None, *, actor: Actor, new_id: NewId) -> Run:
    """End an execution on an operator's word; one that is over stays as it is.

    Raises:
        ExecutionNotFound: no such execution.
    """
    case = await lock_execution(conn, execution_id, new_id)
    after = rules.cancel(case, reason or CANCELLED_BY_OPERATOR, actor)
    await cases.save(conn, [(case, after)], new_id)
    return await look(conn, execution_id)


async def note(  # as `report`
    conn: Connection, execution_id: str, line: Note, *, actor: Actor, new_id: NewId, fence: int | None = None
) -> tuple[Note, bool]:
    """Keep a note with an execution and return the one that is kept; False when this note was kept before.

    Raises:
        ExecutionNotFound: no such execution.
        StaleInstance: another dispatch took the run over.
    """
    case = await lock_current(conn, execution_id, fence, new_id)
    run = (await prove(conn, case, new_id)).execution
    kept, added = await executions.add_note(conn, execution_id, line)
    if added:
        await executions.progressed(conn, execution_id)
        data = {"note_id": line.note_id, "message": line.message, "tags": list(line.tags)}
        fact = rules.about_run(run, FactType.EXECUTION_NOTE, acting_for(actor, run.node_id), data)
        await history.record(conn, fact)
    return kept, added


async def look(conn: Connection, execution_id: str) -> Run:
    """One execution.

    Raises:
        ExecutionNotFound: no such execution.
    """
    run = await executions.get(conn, execution_id)
    if run is None:
        raise ExecutionNotFound
    return run


async def _end_deliveries(conn: Connection, run: Execution, actor: Actor) -> None:
    told_of = await deliveries.make_obsolete(conn, run.execution_id)
    data = {"from": DeliveryStatus.PENDING, "to": DeliveryStatus.OBSOLETE}
    obsolete = rules.about_run(run, FactType.DELIVERY_OBSOLETE, actor, data)
    facts = [replace(obsolete, approval_id=each) for each in told_of]
    await history.record(conn, *facts)


def _about(run: Run, type_: FactType, actor: Actor, data: dict[str, Any]) -> Fact:
    return Fact(type=type_, actor=actor, execution_id=run.execution_id, node_id=run.node_id, data=data)
