"""Calls that only older agents make. Most are best effort: no answer may break such an agent, and none breaks us."""

import hashlib
import re
from datetime import datetime
from typing import Annotated, Any

from litestar import Request, post
from litestar.params import FromPath
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from controlplane.domain.errors import FieldFault
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.ids import NOTE_PREFIX
from controlplane.edge import bodies
from controlplane.edge.deps import agent, fence_of, looking, principal_of, runtime_of, transaction
from controlplane.edge.paths import path_name
from controlplane.http import fields, peer
from controlplane.http.executions import REPORT_LIMIT, duration_ms
from controlplane.http.replies import heard
from controlplane.http.shapes import raw
from controlplane.services import executions as service
from controlplane.services import peers
from controlplane.services.access import own
from controlplane.services.executions import Report
from controlplane.storage.executions import Note, Run, Starting
from controlplane.storage.peers import runs_among

MAX_STATUSES = 500
MAX_NOTE = 20_000
MAX_TAGS = 50

_LABEL = re.compile(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,128}")


class EventIn(Struct, kw_only=True):
    """What became of a run, told beside its report."""

    execution_id: str
    status: str
    result: Raw | UnsetType = UNSET
    error: Any = None


class NestedIn(Struct, kw_only=True):
    """A function that an agent calls inside of a run, as a run of its own."""

    execution_id: fields.Name
    node_id: fields.Name
    run_id: fields.Label | None = None
    reasoner_name: fields.Label | None = None


class StatusesIn(Struct, kw_only=True):
    """The runs that a caller asks about at once."""

    execution_ids: Annotated[list[Annotated[str, Meta(max_length=128)]], Meta(max_length=MAX_STATUSES)]


class PeerNoteIn(Struct, kw_only=True):
    """A line for the run that the X-Execution-ID header names."""

    message: str
    tags: Any = None
    timestamp: Any = None


class AwaiterIn(Struct, kw_only=True):
    """That a run waits for another one, or no longer does."""

    status: str


class Taken(Struct):
    """The call was understood; `kept` says whether anything is kept of it."""

    success: bool = True
    kept: bool = True


class Refused(Struct):
    """What such an agent logs and does without."""

    error: str
    success: bool = False


class NestedOut(Struct):
    """The run that was registered, or that stands under this id."""

    execution_id: str
    run_id: str | None
    workflow_id: str | None
    status: ExecutionStatus


class AwaiterOut(Struct):
    """How a run stands; waiting for another run changes nothing."""

    execution_id: str
    status: ExecutionStatus
    applied: bool = False


class RunStatusOut(Struct, kw_only=True):
    """A run as batch-status answers it; of an unknown one the id and `not_found`."""

    execution_id: str
    status: str
    run_id: str | None = None
    status_reason: str | None = None
    result: Raw | None = None
    error: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_ms: int | None = None


@post("/workflow/executions/events", status_code=200, include_in_schema=False)
async def take_event(request: Request[Any, Any, Any]) -> Taken:
    """Take an event of a run: always taken when it is well formed, of a run that nobody knows too."""
    runtime = runtime_of(request)
    event = await bodies.take(request, EventIn, limit=REPORT_LIMIT)
    ends = peer.final_word({"status": event.status})
    told = Report(
        status=peer.status_of(event.status) if ends else ExecutionStatus.RUNNING,
        result=None if event.result is UNSET else bytes(event.result),
        error=peer.error_text(event.error),
    )
    async with transaction(request) as conn:
        known = await peers.event(
            conn,
            event.execution_id,
            told,
            actor=agent(request, "agent"),
            new_id=runtime.new_id,
            fence=fence_of(request),
        )
    return Taken(kept=known)


@post("/workflow/executions", status_code=200, include_in_schema=False)
async def register_nested(request: Request[Any, Any, Any]) -> NestedOut:
    """Register a function that an agent calls inside of a run: it may pause under this id, and ends by an event."""
    body = await bodies.take(request, NestedIn)
    starting = Starting(
        execution_id=body.execution_id,
        node_id=body.node_id,
        reasoner=body.reasoner_name,
        run_id=body.run_id,
        input=None,
    )
    async with transaction(request) as conn:
        await own(conn, principal_of(request), body.node_id, agent(request, body.node_id))
        run, _ = await service.start(conn, starting, agent(request, body.node_id))
    return NestedOut(run.execution_id, run.run_id, run.run_id, run.status)


@post("/executions/batch-status", status_code=200, include_in_schema=False)
async def batch_status(request: Request[Any, Any, Any]) -> dict[str, RunStatusOut]:
    """How up to 500 runs stand, by id."""
    body = await bodies.take(request, StatusesIn)
    async with looking(request) as conn:
        found = {run.execution_id: heard(request, run) for run in await runs_among(conn, body.execution_ids)}
    return {each: _status(each, found.get(each)) for each in body.execution_ids}


@post("/executions/{execution_id:str}/logs", status_code=200, include_in_schema=False)
async def take_logs(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> Taken:
    """Take what an agent logs and drop it: it stands on the agent's own output too, and several lines a run come."""
    path_name(execution_id)
    await bodies.read_json(request, limit=REPORT_LIMIT)
    return Taken(kept=False)


@post(["/executions/note", "/ui/v1/executions/note"], status_code=200, include_in_schema=False)
async def take_note(request: Request[Any, Any, Any]) -> Taken:
    """Keep a note with the run that X-Execution-ID names; the same bytes again are kept once."""
    runtime = runtime_of(request)
    execution_id = request.headers.get("x-execution-id")
    if not execution_id:
        raise FieldFault("X-Execution-ID", "is required: it names the run that the note belongs to")
    sent = await bodies.read_json(request, limit=bodies.MIB)
    body = bodies.decode(sent, PeerNoteIn)
    line = Note(
        note_id=_note_id(sent) if body.timestamp is not None else runtime.new_id(NOTE_PREFIX),
        message=body.message[:MAX_NOTE],
        tags=_tags(body.tags),
    )
    async with transaction(request) as conn:
        await service.note(
            conn,
            path_name(execution_id),
            line,
            actor=agent(request, "agent"),
            new_id=runtime.new_id,
            fence=fence_of(request),
        )
    return Taken()


@post("/agents/{node_id:str}/executions/{execution_id:str}/awaiter-status", status_code=200, include_in_schema=False)
async def take_awaiter_status(
    request: Request[Any, Any, Any], node_id: FromPath[str], execution_id: FromPath[str]
) -> AwaiterOut:
    """Hear that a run waits for another one: it goes on being `running`, since no person is asked in it."""
    path_name(node_id)
    await bodies.take(request, AwaiterIn)
    async with looking(request) as conn:
        run = await service.look(conn, path_name(execution_id))
    return AwaiterOut(run.execution_id, run.status)


@post("/did/register", status_code=200, include_in_schema=False)
async def refuse_identity(request: Request[Any, Any, Any]) -> Refused:
    """Say that this server issues no identities; an agent that asks for one runs without."""
    await bodies.read_json(request, limit=REPORT_LIMIT)
    return Refused("This control plane issues no identities; the agent runs without one.")


def _status(execution_id: str, run: Run | None) -> RunStatusOut:
    if run is None:
        return RunStatusOut(execution_id=execution_id, status="not_found")
    return RunStatusOut(
        execution_id=run.execution_id,
        run_id=run.run_id,
        status=run.status,
        status_reason=run.status_reason,
        result=raw(run.result),
        error=run.error,
        started_at=run.started_at,
        completed_at=run.ended_at,
        duration_ms=duration_ms(run),
    )


def _note_id(sent: bytes) -> str:
    """An id that the same note has when it is sent again: it carries the time at which it was written."""
    return f"{NOTE_PREFIX}{hashlib.sha256(sent).hexdigest()[:40]}"


def _tags(sent: Any) -> tuple[str, ...]:
    """The tags of a note that are labels; one that is none costs the note nothing but itself."""
    labels = [tag for tag in sent if isinstance(tag, str) and _LABEL.fullmatch(tag)] if isinstance(sent, list) else []
    return tuple(labels[:MAX_TAGS])
