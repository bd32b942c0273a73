"""Deliveries: what agents are told, how often it was tried, and a button to send one again."""

from typing import Any

from litestar import Request, Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.errors import DeliveryNotFound, DeliverySettled
from controlplane.domain.ids import DELIVERY_PREFIX
from controlplane.edge import paging
from controlplane.inbox import present
from controlplane.inbox.deps import actor_of, looking, transaction
from controlplane.inbox.forms import form_of
from controlplane.inbox.lists import ROWS
from controlplane.inbox.rendering import link, page
from controlplane.services import deliveries as service
from controlplane.storage import clock, deliveries, inbox_lists

LIMIT = 16 * 1024
_STATES = {each.value: each for each in DeliveryStatus}


@get("/inbox/deliveries", include_in_schema=False)
async def list_deliveries(request: Request[Any, Any, Any]) -> Response[str]:
    """A page of deliveries, newest first; an unknown state is every state.

    Raises:
        FieldFault: the cursor is none of ours.
    """
    query = request.query_params
    status, cursor = _STATES.get(query.get("status", "")), query.get("cursor") or None
    async with looking(request) as conn:
        now = await clock.now(conn)
        found = await deliveries.page(conn, status, paging.after(cursor), ROWS + 1)
        waiting = await inbox_lists.waiting(conn)
    shown = found[:ROWS]
    return page(
        request,
        "deliveries.html",
        rows=shown,
        more=paging.cursor(shown[-1].created_at, shown[-1].delivery_id) if len(found) > ROWS else None,
        chosen=status,
        cursor=cursor,
        states=present.DELIVERY_STATES,
        said=query.get("said") if query.get("said") in present.REDRIVES else None,
        redrives=present.REDRIVES,
        waiting=waiting,
        now=now,
        per_page=ROWS,
    )


@post("/inbox/deliveries/{delivery_id:str}/redrive", status_code=303, include_in_schema=False)
async def redrive(request: Request[Any, Any, Any], delivery_id: FromPath[str]) -> Response[Any]:
    """Send a delivery again now; one that was settled meanwhile stays as it is, and the page says so.

    Raises:
        DeliveryNotFound: no such delivery.
    """
    form = await form_of(request, limit=LIMIT)
    if not delivery_id.startswith(DELIVERY_PREFIX) or not delivery_id.isascii() or not delivery_id.isprintable():
        raise DeliveryNotFound
    try:
        async with transaction(request) as conn:
            await service.redrive(conn, delivery_id, actor_of(request))
    except DeliverySettled:
        said = "settled"
    else:
        said = "sent"
    status = form.get("status") if form.get("status") in _STATES else None
    return Redirect(link(request, "/inbox/deliveries", status=status, said=said), status_code=303)
