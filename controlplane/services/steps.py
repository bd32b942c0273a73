"""Keeping what a run did: each step once, under the dispatch that stands."""

from controlplane.domain import steps as rules
from controlplane.domain.errors import ExecutionNotFound
from controlplane.domain.events import Actor, Fact, FactType, acting_for
from controlplane.domain.executions import check_fence
from controlplane.domain.steps import Done, Step
from controlplane.services.approvals import lock_execution
from controlplane.services.executions import prove
from controlplane.storage import executions, history, steps
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection


async def keep(
    conn: Connection, execution_id: str, done: Done, *, fence: int | None, actor: Actor, new_id: NewId
) -> tuple[Step, bool]:
    """Keep a step, or return the one that is kept under its name and occurrence; True when it is new.

    Raises:
        ExecutionNotFound: no such execution.
        StaleInstance: the run was dispatched again since; see `domain.executions.check_fence`.
        InvalidState: the run is over, or no agent was given it yet.
        StepMismatch: it is kept at another place of the run.
    """
    case = await lock_execution(conn, execution_id, new_id)
    check_fence(case.execution, fence)
    rules.check_open(case.execution)
    kept = await steps.get(conn, execution_id, done.name, done.occurrence)
    if kept is not None:
        rules.check_place(kept, done)
    # Nothing is refused from here on, so nothing is written of what is refused (`Connection.keep`).
    await prove(conn, case, new_id)
    if kept is not None:
        return kept, False
    step = await steps.add(conn, execution_id, done)
    await executions.progressed(conn, execution_id)
    data = {"name": step.name, "occurrence": step.occurrence, "position": step.position}
    node_id = case.execution.node_id
    fact = Fact(
        type=FactType.STEP_DONE,
        actor=acting_for(actor, node_id),
        execution_id=execution_id,
        node_id=node_id,
        data=data,
    )
    await history.record(conn, fact)
    return step, True


async def page(conn: Connection, execution_id: str, *, after: int, limit: int) -> tuple[list[Step], bool]:
    """The steps of a run behind a position, as many as a page holds, and whether more follow.

    Raises:
        ExecutionNotFound: no such execution.
    """
    if await executions.status_of(conn, execution_id) is None:
        raise ExecutionNotFound
    return await steps.page(conn, execution_id, after=after, limit=limit)
