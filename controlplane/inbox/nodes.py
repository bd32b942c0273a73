"""Nodes: the agent programs, which of their instances are there, and what each serves."""

from typing import Any

from litestar import Request, Response, get

from controlplane.edge import paging
from controlplane.inbox import present
from controlplane.inbox.deps import looking
from controlplane.inbox.lists import ROWS
from controlplane.inbox.rendering import page
from controlplane.storage import clock, inbox_lists
from controlplane.storage import nodes as storage


@get("/inbox/nodes", include_in_schema=False)
async def list_nodes(request: Request[Any, Any, Any]) -> Response[str]:
    """A page of nodes, the ones that came last first.

    Raises:
        FieldFault: the cursor is none of ours.
    """
    cursor = request.query_params.get("cursor") or None
    async with looking(request) as conn:
        now = await clock.now(conn)
        found = await storage.page(conn, paging.after(cursor), ROWS + 1)
        there = await storage.instances_there(conn, [node.node_id for node in found[:ROWS]])
        waiting = await inbox_lists.waiting(conn)
    shown = found[:ROWS]
    return page(
        request,
        "nodes.html",
        rows=[(node, [each for each in there if each.node_id == node.node_id]) for node in shown],
        more=paging.cursor(shown[-1].registered_at, shown[-1].node_id) if len(found) > ROWS else None,
        cursor=cursor,
        states=present.INSTANCE_STATES,
        waiting=waiting,
        now=now,
        per_page=ROWS,
    )
