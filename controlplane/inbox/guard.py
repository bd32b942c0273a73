"""Who gets in: every page says what it is for, and is shown to nobody else; nothing of a request is read before."""

from typing import Any

from litestar.handlers import BaseRouteHandler

from controlplane.domain.access import Access, Principal, check
from controlplane.domain.door_errors import KeyInUrl
from controlplane.domain.errors import NotAllowed, NotAuthenticated
from controlplane.edge.deps import Anybody
from controlplane.edge.keys_in_urls import carries_key
from controlplane.inbox.session import signed_in

ROOM = "inbox"
# What only a script asks: it answers with problem documents. Looking, a script keeps no session awake.
SCRIPT = "script"
_LOOKS = frozenset({"GET", "HEAD"})


async def guard(asked: Anybody, handler: BaseRouteHandler) -> None:
    """Let a person through to a page that is for them.

    Raises:
        KeyInUrl: a key stands in the path or the query.
        NotAuthenticated: nobody is signed in.
        NotAllowed: the key that they signed in with is of another scope; or nobody said what the page is for.
        DatabaseUnavailable: it cannot be known who they are.
    """
    if carries_key(asked.scope):
        raise KeyInUrl
    access = handler.opt.get("access")
    if access is Access.PUBLIC:
        return
    by_itself = is_by_script(asked) and asked.scope["method"] in _LOOKS  # type: ignore[typeddict-item]
    viewer = await signed_in(asked, used=not by_itself)
    if viewer is None:
        raise NotAuthenticated
    asked.state.viewer = viewer
    try:
        check(Principal(key_id=viewer.key_id, name=viewer.name, scopes=viewer.scopes), access or Access.NOBODY)
    except NotAllowed as refusal:
        wanted = " or ".join(refusal.extra["scopes"]) or "nobody"  # type: ignore[arg-type]
        raise NotAllowed(
            f"You are signed in with a key that may not do this; it takes one of scope {wanted}.", **refusal.extra
        ) from None


def is_by_script(asked: Anybody) -> bool:
    """Whether no person sees the answer as a page: a script asked, by the route, or by what it sent or the browser."""
    handler: Any = asked.scope.get("route_handler")
    return (
        bool(handler and handler.opt.get(SCRIPT))
        or "x-csrf-token" in asked.headers
        or asked.headers.get("sec-fetch-dest") == "empty"
    )
