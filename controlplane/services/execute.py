"""Executing: a run that the control plane gives to an agent, made once however often its call is repeated."""

from msgspec import Struct

from controlplane.domain.errors import IdempotencyConflict, NodeNotFound, QueueFull
from controlplane.domain.events import Actor, Fact
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.nodes import Reasoner, Resume
from controlplane.services.executions import look
from controlplane.services.nodes import known_reasoner
from controlplane.storage import dispatches, executions, history
from controlplane.storage.engine import Connection
from controlplane.storage.executions import Queued, Run


class Wanted(Struct, frozen=True, kw_only=True):
    """A call of a reasoner: `target` is `node.reasoner`, `execution_id` and `run_id` are used if the run is new."""

    target: str
    execution_id: str
    run_id: str
    input: bytes | None = None
    parent_execution_id: str | None = None
    idempotency_key: str | None = None
    started_by: str | None = None


class Limits(Struct, frozen=True):
    """How many runs may wait for one node, and the seconds in which an agent must have taken a new one."""

    queue: int
    start_within: float


async def execute(conn: Connection, wanted: Wanted, limits: Limits, actor: Actor) -> tuple[Run, bool]:
    """Queue a run for an agent, or return the one that this key made before; True when it is new.

    Raises:
        NodeNotFound: no node of this name is registered.
        ReasonerNotFound: the node has no such reasoner.
        IdempotencyConflict: the key stands for another target or input.
        QueueFull: as many runs wait for this node as may.
    """
    standing = await _of_key(conn, wanted)
    if standing is not None:
        return standing, False
    node_id, reasoner = await _resolve(conn, wanted.target)
    if await dispatches.is_full(conn, node_id, limits.queue):
        raise QueueFull(f"{limits.queue} runs wait for {node_id} already; send it again after Retry-After.")
    queued = Queued(
        execution_id=wanted.execution_id,
        node_id=node_id,
        reasoner=reasoner.name,
        run_id=wanted.run_id,
        parent_execution_id=wanted.parent_execution_id,
        input=wanted.input,
        idempotency_key=wanted.idempotency_key,
        limit_seconds=reasoner.timeout_seconds,
        resume_at_start=reasoner.resume is Resume.AT_START,
        started_by=wanted.started_by,
    )
    if not await executions.enqueue(conn, queued):
        # The same call came at the same moment, and was first: its row stands, as the insert has waited for it.
        return await _first(conn, wanted), False
    await dispatches.enqueue(conn, queued.execution_id, node_id, limits.start_within)
    data = {"from": None, "to": ExecutionStatus.QUEUED, "reasoner": reasoner.name}
    kind = f"execution.{ExecutionStatus.QUEUED}"
    fact = Fact(type=kind, actor=actor, execution_id=queued.execution_id, node_id=node_id, data=data)
    await history.record(conn, fact)
    return await look(conn, queued.execution_id), True


async def _of_key(conn: Connection, wanted: Wanted) -> Run | None:
    if wanted.idempotency_key is None:
        return None
    execution_id = await executions.id_of_key(conn, wanted.idempotency_key, wanted.started_by)
    if execution_id is None:
        return None
    run = await look(conn, execution_id)
    if f"{run.node_id}.{run.reasoner}" != wanted.target or run.input != wanted.input:
        raise IdempotencyConflict(execution_id=execution_id)
    return run


async def _first(conn: Connection, wanted: Wanted) -> Run:
    run = await _of_key(conn, wanted)
    if run is None:
        raise RuntimeError("an execution was neither added nor found under its key")
    return run


async def _resolve(conn: Connection, target: str) -> tuple[str, Reasoner]:
    """The node and its reasoner; both names may hold dots, so the longest node name that is registered is meant."""
    unknown: NodeNotFound | None = None
    for at in [index for index, letter in enumerate(target) if letter == "."][::-1]:
        try:
            return target[:at], await known_reasoner(conn, target[:at], target[at + 1 :])
        except NodeNotFound as fault:
            unknown = unknown or fault
    raise unknown or NodeNotFound("The target must be written node.reasoner.")
