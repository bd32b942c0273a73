"""Runs that agents start themselves: creation, reports, notes, cancelling, lists."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.params import FromPath, FromQuery, Parameter
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.errors import BodyTooLarge, FieldFault, InvalidBody
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.ids import EXECUTION_PREFIX, NOTE_PREFIX
from controlplane.edge import bodies, paging
from controlplane.edge.deps import agent, base_of, fence_of, looking, operator, principal_of, runtime_of, transaction
from controlplane.edge.paths import path_name
from controlplane.http import fields, peer
from controlplane.http.replies import heard
from controlplane.http.shapes import page_of, raw
from controlplane.services import executions as service
from controlplane.services.access import own
from controlplane.services.executions import Report
from controlplane.storage import approvals, executions
from controlplane.storage.executions import Filter, Note, Run, Starting

REPORT_LIMIT = 8 * bodies.MIB
RESULT_TOO_LARGE = "result_too_large"
RESULT_UNREADABLE = "result_unreadable"

NodeId = Annotated[str | None, Parameter(max_length=128)]


class StartIn(Struct, kw_only=True):
    """A run that its own program starts; the same id again continues it."""

    node_id: fields.Name
    execution_id: fields.Name | None = None
    reasoner: fields.Label | None = None
    input: Raw | UnsetType = UNSET
    run_id: fields.Label | None = None


class ReportIn(Struct, kw_only=True):
    """How a run ended; anything but an end changes nothing. `reason` is kept of a run that failed.

    Of what older agents send besides, only `error_details.reason` counts.
    """

    status: peer.StatusWord
    result: Raw | UnsetType = UNSET
    error: peer.Fault | None = None
    reason: peer.Reason | None = None
    error_details: Any = None


class CancelIn(Struct, kw_only=True):
    """Why a run is cancelled."""

    reason: Annotated[str, Meta(max_length=500)] | None = None


class NoteIn(Struct, kw_only=True):
    """A line kept with a run; the same note_id again is kept once."""

    message: Annotated[str, Meta(max_length=20_000)]
    note_id: fields.Name | None = None
    tags: Annotated[list[fields.Label], Meta(max_length=50)] = []


class NoteOut(Struct):
    """A note as it is kept."""

    note_id: str
    message: str
    tags: list[str]
    at: datetime | None = None


class ExecutionOut(Struct, kw_only=True):
    """A run as it stands.

    Of a `dispatched` one: `fence` counts its dispatches, `instance_id` is who holds it, `attempts` and `last_error`
    are those of the present dispatch, and `outcome_pending` says that its code has not seen its end yet.
    """

    execution_id: str
    node_id: str
    run_id: str | None
    parent_execution_id: str | None
    reasoner: str | None
    status: ExecutionStatus
    status_reason: str | None
    pending_approvals: int
    input: Raw | None
    result: Raw | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    ended_at: datetime | None
    dispatched: bool
    fence: int
    instance_id: str | None
    outcome_pending: bool
    limit_seconds: float | None
    worked_seconds: float
    attempts: int
    last_error: str | None


class ExecutionDetailOut(ExecutionOut, kw_only=True):
    """A run with its notes and its newest approval; `completed_at` and `duration_ms` are for agents of older SDKs."""

    notes: list[NoteOut]
    completed_at: datetime | None
    duration_ms: int | None
    approval_request_id: str | None
    approval_status: ApprovalStatus | None
    approval_request_url: str | None


class ExecutionsOut(Struct):
    """A page of runs, newest first; `next_cursor` is null on the last one."""

    executions: list[ExecutionOut]
    next_cursor: str | None


@post("/executions", status_code=201, opt={"takes": StartIn, "also": [200]})
async def start_execution(request: Request[Any, Any, Any]) -> Response[ExecutionOut]:
    """Start a run; 200 with the run that stands when this id was started before."""
    runtime = runtime_of(request)
    body = await bodies.take(request, StartIn, limit=REPORT_LIMIT)
    node_id = body.node_id
    if node_id == "executions":
        raise FieldFault("node_id", "must not be `executions`, which is a path of this API")
    starting = Starting(
        execution_id=body.execution_id or runtime.new_id(EXECUTION_PREFIX),
        node_id=node_id,
        reasoner=body.reasoner,
        run_id=body.run_id,
        input=_json(body.input),
    )
    async with transaction(request) as conn:
        await own(conn, principal_of(request), node_id, agent(request, node_id))
        run, new = await service.start(conn, starting, agent(request, node_id))
    return Response(execution_out(request, run), status_code=201 if new else 200)


@get("/executions")
async def list_executions(
    request: Request[Any, Any, Any],
    status: FromQuery[ExecutionStatus | None] = None,
    node_id: NodeId = None,
    stale: FromQuery[bool] = False,
    limit: paging.Limit = paging.DEFAULT_LIMIT,
    cursor: paging.Cursor = None,
) -> ExecutionsOut:
    """Runs, newest first; `stale` keeps the running ones that gave no sign for 24 h."""
    which = Filter(status=status, node_id=paging.clean("node_id", node_id), stale=stale)
    async with looking(request) as conn:
        runs = await executions.page(conn, which, paging.after(cursor), limit + 1)
    shown = [execution_out(request, run) for run in runs[:limit]]
    more = paging.cursor(shown[-1].created_at, shown[-1].execution_id) if len(runs) > limit else None
    return ExecutionsOut(shown, more)


@get("/executions/{execution_id:str}")
async def get_execution(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> ExecutionDetailOut:
    """One run, with its notes and its newest approval."""
    async with looking(request) as conn:
        run = await service.look(conn, path_name(execution_id))
        notes = await executions.notes_of(conn, run.execution_id)
        asked = await approvals.newest(conn, run.execution_id, None)
    return ExecutionDetailOut(
        **_fields(request, run),
        notes=[_note_out(note) for note in notes],
        completed_at=run.ended_at,
        duration_ms=duration_ms(run),
        approval_request_id=asked.approval_request_id if asked else None,
        approval_status=asked.status if asked else None,
        approval_request_url=page_of(asked, base_of(request)) if asked else None,
    )


@post("/executions/{execution_id:str}/status", status_code=200, opt={"takes": ReportIn})
async def report_status(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> ExecutionOut:
    """Report how a run ended; a final status stays, the result is stored.

    A report over 8 MiB fails the run, and so does an end whose result is JSON that parsers read differently.
    """
    # Such a run can never report: without an end it would stay running for ever.
    try:
        sent = await bodies.read_json(request, limit=REPORT_LIMIT)
    except BodyTooLarge:
        await _report(request, execution_id, Report(status=ExecutionStatus.FAILED, reason=RESULT_TOO_LARGE))
        raise
    try:
        body = bodies.decode(sent, ReportIn)
    except InvalidBody:
        if peer.ends_a_run(sent):
            await _report(request, execution_id, Report(status=ExecutionStatus.FAILED, reason=RESULT_UNREADABLE))
        raise
    return execution_out(request, await _report(request, execution_id, _told(body)))


@post("/executions/{execution_id:str}/cancel", status_code=200, opt={"takes": CancelIn, "body_optional": True})
async def cancel_execution(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> ExecutionOut:
    """Cancel a run: what it asked is withdrawn, and it is told so."""
    runtime = runtime_of(request)
    body = await bodies.take_if_sent(request, CancelIn)
    async with transaction(request) as conn:
        run = await service.cancel(
            conn, path_name(execution_id), body.reason, actor=operator(request), new_id=runtime.new_id
        )
    return execution_out(request, run)


@post("/executions/{execution_id:str}/notes", status_code=201, opt={"takes": NoteIn, "also": [200]})
async def add_note(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> Response[NoteOut]:
    """Keep a line with a run; 200 when this note was kept before."""
    runtime = runtime_of(request)
    body = await bodies.take(request, NoteIn)
    note_id = body.note_id or runtime.new_id(NOTE_PREFIX)
    line = Note(note_id=note_id, message=body.message, tags=tuple(body.tags))
    async with transaction(request) as conn:
        kept, new = await service.note(
            conn,
            path_name(execution_id),
            line,
            actor=agent(request, "agent"),
            new_id=runtime.new_id,
            fence=fence_of(request),
        )
    return Response(_note_out(kept), status_code=201 if new else 200)


def _note_out(note: Note) -> NoteOut:
    return NoteOut(note.note_id, note.message, list(note.tags), note.at)


def execution_out(request: Request[Any, Any, Any], run: Run) -> ExecutionOut:
    """A run as sent to this caller."""
    return ExecutionOut(**_fields(request, run))


async def _report(request: Request[Any, Any, Any], execution_id: str, told: Report) -> Run:
    runtime = runtime_of(request)
    async with transaction(request) as conn:
        return await service.report(
            conn,
            path_name(execution_id),
            told,
            actor=agent(request, "agent"),
            new_id=runtime.new_id,
            fence=fence_of(request),
        )


def _told(body: ReportIn) -> Report:
    status = peer.status_of(body.status)
    reason = peer.reason_of(body.reason, body.error_details) if status is ExecutionStatus.FAILED else None
    return Report(
        status=status,
        result=_json(body.result),
        error=peer.error_text(body.error, body.error_details),
        reason=reason,
        shutdown=peer.is_hand_back(status, body.error_details),
    )


def duration_ms(run: Run) -> int | None:
    """How long a run took from its start to its end, its waits among it; None while it has not ended."""
    if run.started_at is None or run.ended_at is None:
        return None
    return round((run.ended_at - run.started_at).total_seconds() * 1000)


def _fields(request: Request[Any, Any, Any], run: Run) -> dict[str, Any]:
    run = heard(request, run)
    fields = {field: getattr(run, field) for field in ExecutionOut.__struct_fields__}
    return fields | {"input": raw(run.input), "result": raw(run.result)}


def _json(value: Raw | UnsetType) -> bytes | None:
    return None if value is UNSET else bytes(value)
