"""Runs: the list by state and node, and one with what it asked and everything that happened to it."""

from typing import Any

from litestar import Request, Response, get
from litestar.params import FromPath

from controlplane.domain.executions import ExecutionStatus
from controlplane.edge import paging
from controlplane.edge.paths import path_name
from controlplane.inbox import present, present_payload, present_timeline
from controlplane.inbox.deps import looking
from controlplane.inbox.lists import ROWS
from controlplane.inbox.present_payload import Value
from controlplane.inbox.rendering import page
from controlplane.services import executions as service
from controlplane.storage import clock, executions, inbox_approvals, inbox_lists, inbox_runs

_STATES = {each.value: each for each in ExecutionStatus}
# What went in or came out of a run is a look beside the point: more of it than this is not drawn.
_MOST_DRAWN = 256 * 1024


@get("/inbox/executions", include_in_schema=False)
async def list_executions(request: Request[Any, Any, Any]) -> Response[str]:
    """A page of runs, newest first; an unknown state is every state.

    Raises:
        FieldFault: the node or the cursor cannot be one.
    """
    query = request.query_params
    status = _STATES.get(query.get("status", ""))
    node = (paging.clean("node", query.get("node")) or "").strip() or None
    cursor = query.get("cursor") or None
    async with looking(request) as conn:
        now = await clock.now(conn)
        found = await inbox_runs.page(conn, status, node, paging.after(cursor), ROWS + 1)
        waiting = await inbox_lists.waiting(conn)
    runs = found[:ROWS]
    return page(
        request,
        "executions.html",
        runs=runs,
        more=paging.cursor(runs[-1].created_at, runs[-1].execution_id) if len(found) > ROWS else None,
        chosen=status,
        node=node,
        cursor=cursor,
        states=present.RUN_STATES,
        reason=present_timeline.reason,
        waiting=waiting,
        now=now,
        per_page=ROWS,
    )


@get("/inbox/executions/{execution_id:str}", include_in_schema=False)
async def show_execution(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> Response[str]:
    """One run.

    Raises:
        ExecutionNotFound: no such run.
    """
    async with looking(request) as conn:
        run = await service.look(conn, path_name(execution_id))
        entries = await inbox_runs.timeline(conn, run.execution_id)
        beside: dict[str, Any] = {
            "asked": await inbox_runs.asked(conn, run.execution_id),
            "presence": await inbox_approvals.presence(conn, run.node_id),
            "notes": await executions.notes_of(conn, run.execution_id),
            "waiting": await inbox_lists.waiting(conn),
            "now": await clock.now(conn),
        }
    return page(
        request,
        "execution.html",
        run=run,
        run_reason=present_timeline.reason(run.status_reason),
        states=present.RUN_STATES,
        lines=present_timeline.timeline(entries),
        cut=len(entries) == inbox_runs.MOST_LINES,
        input=_drawn(run.input),
        result=_drawn(run.result),
        **beside,
    )


def _drawn(raw: bytes | None) -> Value | str | None:
    """What went in or came out, as fields; how large it is where that is too much to draw."""
    if raw is None or len(raw) > _MOST_DRAWN:
        return None if raw is None else present.size(len(raw))
    return present_payload.payload(raw, None).value
