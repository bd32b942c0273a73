"""Callers start runs here: an agent is found for each, and a call may wait for the end."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Request, Response, post
from litestar.params import FromPath, Parameter
from msgspec import UNSET, Raw, Struct, UnsetType

from controlplane.domain.errors import DatabaseUnavailable, FieldFault
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.ids import EXECUTION_PREFIX, RUN_PREFIX
from controlplane.edge import bodies
from controlplane.edge.deps import (
    label_of,
    looking,
    operator,
    present,
    presented_of,
    principal_of,
    runtime_of,
    transaction,
)
from controlplane.http.executions import duration_ms
from controlplane.http.replies import heard
from controlplane.http.shapes import raw
from controlplane.services import execute as service
from controlplane.services.execute import Limits, Wanted
from controlplane.services.executions import look
from controlplane.storage.executions import Run

INPUT_LIMIT = 8 * bodies.MIB
MAX_SECONDS = 600

Seconds = Annotated[float, Parameter(description="Seconds to wait for the end of the run, 0 to 600.")]


class ExecuteIn(Struct, kw_only=True):
    """What a reasoner is called with; `context` is taken and not used."""

    input: Raw | UnsetType = UNSET
    context: Raw | UnsetType = UNSET
    webhook: Raw | UnsetType = UNSET


class ExecutedOut(Struct, kw_only=True):
    """A run as it stands when its call is answered."""

    execution_id: str
    run_id: str | None
    status: ExecutionStatus
    status_reason: str | None
    result: Raw | None
    error_message: str | None
    duration_ms: int | None
    finished_at: datetime | None


class QueuedOut(Struct, kw_only=True):
    """A run that an agent is being found for."""

    execution_id: str
    run_id: str | None
    workflow_id: str | None
    status: ExecutionStatus
    target: str
    type: str
    created_at: datetime


@post("/execute/{target:str}", status_code=200, opt={"takes": ExecuteIn, "also": [202]})
async def execute(request: Request[Any, Any, Any], target: FromPath[str], wait: Seconds = 60) -> Response[ExecutedOut]:
    """Run node.reasoner and answer with its end; 202 with the run as it stands when the time passes first.

    The same Idempotency-Key joins the same run, however often it is sent.
    """
    if not 0 <= wait <= MAX_SECONDS:
        raise FieldFault("wait", f"must be a number of seconds from 0 to {MAX_SECONDS}")
    run = await until_ended(request, await _start(request, target), wait)
    status = 200 if run.final else 202
    return Response(_executed(heard(request, run)), status_code=status, headers=_names(run))


@post("/execute/async/{target:str}", status_code=202, opt={"takes": ExecuteIn})
async def execute_async(request: Request[Any, Any, Any], target: FromPath[str]) -> Response[QueuedOut]:
    """Run node.reasoner; answered as soon as that is certain."""
    run = await _start(request, target)
    out = QueuedOut(
        execution_id=run.execution_id,
        run_id=run.run_id,
        workflow_id=run.run_id,
        status=run.status,
        target=target,
        type="reasoner",
        created_at=run.created_at,
    )
    return Response(out, status_code=202, headers=_names(run))


async def until_ended(request: Request[Any, Any, Any], run: Run, seconds: float) -> Run:
    """The run once it is over, or as it stands when the time passed, its caller went or the server stops."""
    runtime = runtime_of(request)
    wait = runtime.runs.enter([run.execution_id]) if seconds and not run.final else None
    if wait is None:
        return run
    with wait, runtime.keys.holding(presented_of(request), wait.wake):
        run = await _look(request, run.execution_id)
        if run.final:
            return run
        async with present(request, wait):
            await wait.sleep(seconds)
    try:
        return await _look(request, run.execution_id)
    except DatabaseUnavailable:
        return run  # the run is certain: as it stood is a better answer than one that says to send the call again


async def _look(request: Request[Any, Any, Any], execution_id: str) -> Run:
    async with looking(request) as conn:
        return await look(conn, execution_id)


async def _start(request: Request[Any, Any, Any], target: str) -> Run:
    runtime = runtime_of(request)
    body = await bodies.take(request, ExecuteIn, limit=INPUT_LIMIT)
    if body.webhook is not UNSET and bytes(body.webhook) != b"null":
        raise FieldFault("webhook", "is not taken; wait for the run, poll it, or follow GET /api/v1/events")
    settings = runtime.settings
    wanted = Wanted(
        target=target,
        execution_id=runtime.new_id(EXECUTION_PREFIX),
        run_id=label_of(request, "X-Run-ID") or runtime.new_id(RUN_PREFIX),
        input=None if body.input is UNSET else bytes(body.input),
        parent_execution_id=label_of(request, "X-Parent-Execution-ID"),
        idempotency_key=label_of(request, "Idempotency-Key"),
        started_by=principal_of(request).key_id,
    )
    limits = Limits(settings.node_queue, settings.start_within_hours * 3600)
    async with transaction(request) as conn:
        run, _ = await service.execute(conn, wanted, limits, operator(request))
    return run


def _executed(run: Run) -> ExecutedOut:
    return ExecutedOut(
        execution_id=run.execution_id,
        run_id=run.run_id,
        status=run.status,
        status_reason=run.status_reason,
        result=raw(run.result),
        error_message=run.error,
        duration_ms=duration_ms(run),
        finished_at=run.ended_at,
    )


def _names(run: Run) -> dict[str, str]:
    return {"X-Execution-ID": run.execution_id} | ({"X-Run-ID": run.run_id} if run.run_id else {})
