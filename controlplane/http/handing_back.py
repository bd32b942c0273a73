"""An instance that is about to stop gives back the runs that it no longer works on."""

from typing import Annotated, Any

from litestar import Request, post
from litestar.params import FromPath
from msgspec import Meta, Struct

from controlplane.domain.errors import FieldFault, NodeNotFound
from controlplane.domain.ids import check_name
from controlplane.edge import bodies
from controlplane.edge.deps import agent, principal_of, runtime_of, transaction
from controlplane.http import fields
from controlplane.services import dispatch
from controlplane.services.access import acts_for

MAX_RUNS = 1000


class HeldIn(Struct):
    """A run, and the dispatch under which it was held."""

    execution_id: fields.Name
    fence: Annotated[int, Meta(ge=0, le=2**63 - 1)]


class HandBackIn(Struct, kw_only=True):
    """The runs that an instance gives back; others may run them from now on."""

    instance_id: fields.Label
    executions: Annotated[list[HeldIn], Meta(max_length=MAX_RUNS)]


class HandBackOut(Struct):
    """Those of the runs that were this instance's own; the others are in other hands already."""

    handed_back: list[str]


@post("/nodes/{node_id:str}/hand-back", status_code=200, opt={"takes": HandBackIn})
async def hand_back(request: Request[Any, Any, Any], node_id: FromPath[str]) -> HandBackOut:
    """Give runs back: a waiting one rests until it has its answer, any other is dispatched again at once."""
    runtime = runtime_of(request)
    try:
        name = check_name("node_id", node_id)
    except FieldFault:
        raise NodeNotFound from None
    body = await bodies.take(request, HandBackIn)
    fences = {held.execution_id: held.fence for held in body.executions}
    async with transaction(request) as conn:
        await acts_for(conn, principal_of(request), name)
        back = await dispatch.hand_back(
            conn, body.instance_id, fences, actor=agent(request, name), new_id=runtime.new_id
        )
    return HandBackOut(back)
