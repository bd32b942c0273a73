"""Who calls: every route says what it is for, and is refused to everybody else before its body is read."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler

from controlplane.domain import keys
from controlplane.domain.access import ANYBODY_HERE, Access, Principal, check
from controlplane.domain.door_errors import KeyInUrl
from controlplane.domain.errors import InvalidKey, NotAuthenticated
from controlplane.domain.keys import Presented
from controlplane.edge.keys_in_urls import carries_key
from controlplane.edge.throttle import counted, is_suspect
from controlplane.runtime import Runtime

HEADER = "x-api-key"
_BEARER = "bearer "
Asked = ASGIConnection[Any, Any, Any, Any]


async def guard(asked: Asked, handler: BaseRouteHandler) -> None:
    """Let a caller through to a route that is for them; the framework calls it before every handler.

    Raises:
        KeyInUrl: a key stands in the path or the query.
        NotAuthenticated: the route needs a key, and none was sent.
        InvalidKey: the key is none of ours, or no good any more.
        TooManyFailures: the same, after many such failures from the caller's address.
        NotAllowed: the key is of another scope; or nobody said what the route is for.
    """
    if carries_key(asked.scope):
        raise KeyInUrl
    access = handler.opt.get("access")
    if access is Access.PUBLIC:
        return
    try:
        principal, presented = await _recognised(asked)
    except InvalidKey as refusal:
        raise counted(asked, refusal) from None
    check(principal, access or Access.NOBODY)
    asked.state.principal = principal
    asked.state.presented = presented
    asked.state.access = access


async def _recognised(asked: Asked) -> tuple[Principal, Presented | None]:
    runtime: Runtime = asked.app.state.runtime
    if runtime.open:
        # Whatever key a program sends by habit: there is none that it could be.
        return ANYBODY_HERE, None
    sent = _sent(asked)
    if sent is None:
        raise NotAuthenticated
    presented = keys.read(sent)
    if presented is None:
        raise InvalidKey
    principal = await runtime.keys.recognise(presented, suspect=is_suspect(asked))
    if principal is None:
        raise InvalidKey
    return principal, presented


def _sent(asked: Asked) -> str | None:
    """The key as sent; two that differ are none."""
    given = {value.strip() for value in asked.headers.getall(HEADER, [])}
    for value in asked.headers.getall("authorization", []):
        if value[: len(_BEARER)].lower() == _BEARER:
            given.add(value[len(_BEARER) :].strip())
    given.discard("")
    if len(given) > 1:
        raise InvalidKey("Two keys were sent that differ; send one.")
    return given.pop() if given else None
