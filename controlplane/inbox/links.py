"""Ways between our own pages, for whoever has to sign in first: there and back again, and nowhere else."""

import re
from typing import Any
from urllib.parse import quote

from litestar import Request

from controlplane.edge.keys_in_urls import carries_key
from controlplane.inbox.rendering import link

HOME = "/inbox"
SIGN_IN = "/inbox/sign-in"
LONGEST = 2_000
_PART = r"[A-Za-z0-9._~!$&'()*+,;=:@%-]+"
_OURS = re.compile(rf"/inbox(/{_PART})*(\?[A-Za-z0-9._~!$&'()*+,;=:@%/?-]*)?")
_DOTS = re.compile(r"/(\.|%2e){1,2}(?=[/?]|$)", re.IGNORECASE)
_NEVER = re.compile(r"/inbox/sign-(in|out)([/?]|$)")
_PAGE_OF_A_FORM = re.compile(r"/inbox/apr_[A-Za-z0-9_]+(?=/)")
_KEPT = "/~!$&'()*+,;=:@%"


def way_back(wanted: str | None) -> str:
    """Where somebody goes once they are signed in: the page of ours that they came for, or the inbox.

    Args:
        wanted: the path and query of a page, as it was sent along; anybody may have written it.
    """
    if wanted is None or len(wanted) > LONGEST or not _OURS.fullmatch(wanted):
        return HOME
    path, _, query = wanted.partition("?")
    if _DOTS.search(path) or _NEVER.match(path) or carries_key({"path": path, "query_string": query.encode()}):
        return HOME
    return wanted


def to_sign_in(request: Request[Any, Any, Any]) -> str:
    """The address to sign in at, with the way back to what was asked for."""
    wanted = way_back(_asked(request))
    return link(request, SIGN_IN, next=None if wanted == HOME else wanted)


def here(request: Request[Any, Any, Any]) -> str:
    """The address of what was asked for."""
    return link(request, way_back(_asked(request)))


def _asked(request: Request[Any, Any, Any]) -> str:
    path = quote(request.scope["path"], safe=_KEPT)
    if request.method != "GET":
        # Behind what was sent lies the page that it was sent from.
        found = _PAGE_OF_A_FORM.match(path)
        return found[0] if found else HOME
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path
