"""Callers see here which agent programs are registered, what each serves, and which of its processes are there."""

from datetime import datetime
from typing import Annotated, Any

from litestar import Request, get
from litestar.params import FromPath, Parameter
from msgspec import Struct, structs

from controlplane.domain.nodes import GoneReason, Instance, InstanceStatus, Node, Resume
from controlplane.edge import paging
from controlplane.edge.deps import looking
from controlplane.http.nodes import path_node
from controlplane.services import nodes as service
from controlplane.storage import nodes as storage

Limit = Annotated[int, Parameter(ge=1, le=paging.MAX_LIMIT, description="Nodes of a page, 1 to 200.")]


class ReasonerOut(Struct, kw_only=True):
    """A function that a node serves."""

    name: str
    timeout_seconds: float | None
    resume: Resume


class ReasonerDetailOut(ReasonerOut, kw_only=True):
    """A function that a node serves, with what it accepts where that is short."""

    input_schema: dict[str, Any] | None


class InstanceOut(Struct, kw_only=True):
    """One process of a node."""

    instance_id: str
    base_url: str
    version: str
    status: InstanceStatus
    reasoners: list[str]
    replay: bool
    fence: bool
    lease_seconds: float
    lease_until: datetime
    registered_at: datetime
    seen_at: datetime
    gone_at: datetime | None
    gone_reason: GoneReason | None


class NodeOut(Struct, kw_only=True):
    """An agent program as it registered last, with its instances that are there; `owner` is the key it belongs to."""

    node_id: str
    version: str
    reasoners: list[ReasonerOut]
    max_concurrent: int | None
    owner: str | None
    registered_at: datetime
    updated_at: datetime
    instances: list[InstanceOut]


class NodeDetailOut(Struct, kw_only=True):
    """An agent program as it registered last, with its instances, those that are gone too, and with its owner."""

    node_id: str
    version: str
    reasoners: list[ReasonerDetailOut]
    max_concurrent: int | None
    owner: str | None
    registered_at: datetime
    updated_at: datetime
    instances: list[InstanceOut]


class NodesOut(Struct):
    """A page of nodes, the newest first."""

    nodes: list[NodeOut]
    next_cursor: str | None


@get("/nodes")
async def list_nodes(
    request: Request[Any, Any, Any], limit: Limit = paging.MAX_LIMIT, cursor: paging.Cursor = None
) -> NodesOut:
    """Agent programs, the ones that came last first, each with its instances that are there."""
    async with looking(request) as conn:
        found = await storage.page(conn, paging.after(cursor), limit + 1)
        there = await storage.instances_there(conn, [node.node_id for node in found[:limit]])
    shown = [
        NodeOut(
            **_shared(node, [each for each in there if each.node_id == node.node_id]),
            reasoners=[
                ReasonerOut(name=r.name, timeout_seconds=r.timeout_seconds, resume=r.resume) for r in node.reasoners
            ],
        )
        for node in found[:limit]
    ]
    more = paging.cursor(shown[-1].registered_at, shown[-1].node_id) if len(found) > limit else None
    return NodesOut(shown, more)


@get("/nodes/{node_id:str}")
async def get_node(request: Request[Any, Any, Any], node_id: FromPath[str]) -> NodeDetailOut:
    """One agent program, with what its reasoners accept and with the instances that it had of late."""
    async with looking(request) as conn:
        node = await service.look(conn, path_node(node_id))
        instances = await storage.instances_of(conn, node.node_id, service.SHOWN_INSTANCES)
    return NodeDetailOut(
        **_shared(node, instances), reasoners=[ReasonerDetailOut(**structs.asdict(each)) for each in node.reasoners]
    )


def _shared(node: Node, instances: list[Instance]) -> dict[str, Any]:
    kept = ("node_id", "version", "max_concurrent", "owner", "registered_at", "updated_at")
    return {name: getattr(node, name) for name in kept} | {"instances": [_instance_out(each) for each in instances]}


def _instance_out(instance: Instance) -> InstanceOut:
    same = {name: getattr(instance, name) for name in InstanceOut.__struct_fields__ if hasattr(instance, name)}
    return InstanceOut(**(same | {"reasoners": list(instance.reasoners), "fence": instance.fenced}))
