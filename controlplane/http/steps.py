"""The steps of a run: kept as they are done, and read when it is started again."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.params import FromPath, Parameter
from msgspec import Meta, Raw, Struct

from controlplane.domain.steps import MAX_PREVIOUS, Done, Step, check_size
from controlplane.edge import bodies, paging
from controlplane.edge.deps import agent, fence_of, looking, runtime_of, transaction
from controlplane.edge.paths import path_name
from controlplane.http import fields
from controlplane.services import steps as service

STEP_LIMIT = 8 * bodies.MIB

Occurrence = Annotated[int, Meta(ge=1, le=2**31 - 1)]
After = Annotated[int, Parameter(ge=0, le=2**31 - 1, description="`next_after` of the page before.")]


class StepIn(Struct, kw_only=True):
    """What a run did; the same name and occurrence again finds the step that is kept."""

    name: fields.StepName
    occurrence: Occurrence
    previous: Annotated[str, Meta(max_length=MAX_PREVIOUS)] | None = None
    result: Raw


class StepOut(Struct):
    """A step as it is kept."""

    name: str
    occurrence: int
    position: int
    previous: str | None
    result: Raw
    at: datetime


class StepsOut(Struct):
    """A page of steps in the order they were done; `next_after` is null on the last one."""

    steps: list[StepOut]
    next_after: int | None


@post("/executions/{execution_id:str}/steps", status_code=201, opt={"takes": StepIn, "also": [200]})
async def keep_step(request: Request[Any, Any, Any], execution_id: FromPath[str]) -> Response[StepOut]:
    """Keep the result of a step; 200 with the one that is kept when this step was kept before."""
    runtime = runtime_of(request)
    fence = fence_of(request)
    body = await bodies.take(request, StepIn, limit=STEP_LIMIT)
    done = Done(
        name=body.name, occurrence=body.occurrence, previous=body.previous, result=check_size(bytes(body.result))
    )
    async with transaction(request) as conn:
        step, new = await service.keep(
            conn,
            path_name(execution_id),
            done,
            fence=fence,
            actor=agent(request, "agent"),
            new_id=runtime.new_id,
        )
    return Response(_step_out(step), status_code=201 if new else 200)


@get("/executions/{execution_id:str}/steps")
async def list_steps(
    request: Request[Any, Any, Any],
    execution_id: FromPath[str],
    after: After = 0,
    limit: paging.Limit = paging.MAX_LIMIT,
) -> StepsOut:
    """The steps of a run in the order they were done; a page holds 4 MiB of results at most, but always one step."""
    async with looking(request) as conn:
        found, more = await service.page(conn, path_name(execution_id), after=after, limit=limit)
    return StepsOut([_step_out(step) for step in found], found[-1].position if more else None)


def _step_out(step: Step) -> StepOut:
    return StepOut(step.name, step.occurrence, step.position, step.previous, Raw(step.result), step.at)
