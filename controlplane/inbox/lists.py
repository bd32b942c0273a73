"""The list: what waits for a person, what was decided and what ended without anybody."""

from functools import partial
from typing import Any

from litestar import Request, Response, get
from msgspec import Struct

from controlplane.edge import paging
from controlplane.edge.deps import base_of, runtime_of
from controlplane.inbox import cards, present
from controlplane.inbox.deps import looking
from controlplane.inbox.rendering import page
from controlplane.storage import clock, inbox_lists
from controlplane.storage.inbox_lists import Sought, Tab

ROWS = 50
TABS = {Tab.WAITING: "Waiting", Tab.DECIDED: "Decided", Tab.EXPIRED: "Expired", Tab.ALL: "All"}
_NAMED = {each.value: each for each in Tab}


class Asked(Struct, frozen=True):
    """What the address asks for, as it is kept in the page's links."""

    tab: Tab
    q: str | None
    node: str | None
    cursor: str | None

    @property
    def filtered(self) -> bool:
        """True when less is shown than the tab holds."""
        return self.q is not None or self.node is not None


@get("/inbox", include_in_schema=False)
async def list_approvals(request: Request[Any, Any, Any]) -> Response[str]:
    """A page of a tab; an unknown tab is the first one.

    Raises:
        FieldFault: the search, the node or the cursor cannot be one.
    """
    asked = _asked(request)
    sought = Sought(tab=asked.tab, text=asked.q, node_id=asked.node)
    async with looking(request) as conn:
        now = await clock.now(conn)
        found = await inbox_lists.page(conn, sought, paging.after(asked.cursor), ROWS + 1)
        waiting = await inbox_lists.waiting(conn)
    shown = found[:ROWS]
    more = None
    if len(found) > ROWS:
        more = paging.cursor(inbox_lists.place_of(shown[-1], asked.tab), shown[-1].approval_id)
    rows = [present.row(each, now) for each in shown]
    return page(
        request,
        "list.html",
        asked=asked,
        rows=rows,
        more=more,
        waiting=waiting,
        now=now,
        tabs=TABS,
        per_page=ROWS,
        base=base_of(request) or "https://YOUR-SERVER",
        fresh=runtime_of(request).new_id("")[-8:],
        questions=cards.questions_for(request),
        new_submission=partial(cards.fresh, request),
    )


def _asked(request: Request[Any, Any, Any]) -> Asked:
    query = request.query_params
    return Asked(
        _NAMED.get(query.get("tab", ""), Tab.WAITING),
        (paging.clean("q", query.get("q")) or "").strip() or None,
        (paging.clean("node", query.get("node")) or "").strip() or None,
        query.get("cursor") or None,
    )
