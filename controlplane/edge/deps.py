"""What handlers are given, and what they know of a request: the runtime, who asks, and under which address."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from litestar import Request
from litestar.connection import ASGIConnection

from controlplane.domain.access import Principal, Reach, check
from controlplane.domain.errors import FieldFault, InvalidKey, NotAuthenticated
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import Presented, Scope
from controlplane.domain.proxies import client_of
from controlplane.runtime import Runtime, Wait
from controlplane.storage.engine import Connection

FENCE_HEADER = "X-Holdshort-Fence"
_LARGEST_FENCE = 2**63 - 1
MAX_LABEL = 255
_DIGITS = re.compile(r"[0-9]{1,19}")
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?")
AnyRequest = Request[Any, Any, Any]
Anybody = ASGIConnection[Any, Any, Any, Any]


def runtime_of(request: Anybody) -> Runtime:
    """The process's runtime."""
    runtime: Runtime = request.app.state.runtime
    return runtime


def principal_of(request: AnyRequest) -> Principal:
    """Who calls, as `http.access.guard` found."""
    principal: Principal = request.state.principal
    return principal


def presented_of(request: AnyRequest) -> Presented | None:
    """The key that came, by which it is looked at again; None in open mode."""
    presented: Presented | None = request.state.presented
    return presented


def reach_of(request: AnyRequest) -> Reach:
    """Which runs the caller may see and touch by this route."""
    return principal_of(request).reach(request.state.access)


def reads_for_agent(request: AnyRequest) -> bool:
    """Whether what is read here is known to its agent from then on: a person who reads it is not its agent."""
    return Scope.AGENT in principal_of(request).scopes


async def still_here(request: AnyRequest, *, fresh: bool = False) -> None:
    """Make sure that a caller is still who came: a body may have come slowly, or a call been held open meanwhile.

    Args:
        request: what is answered; who calls and what is theirs are brought up to date.
        fresh: look it up anew.

    Raises:
        InvalidKey: the key is no good any more.
        NotAuthenticated: there was none, and open mode has ended.
    """
    runtime, presented = runtime_of(request), presented_of(request)
    if presented is None:
        if not runtime.open:
            raise NotAuthenticated
        return
    principal = await runtime.keys.standing(presented, fresh=fresh)
    if principal is None:
        raise InvalidKey
    check(principal, request.state.access)
    request.state.principal = principal


@asynccontextmanager
async def transaction(request: AnyRequest) -> AsyncIterator[Connection]:
    """A transaction in which nothing beyond the caller's reach is found.

    Raises:
        InvalidKey, NotAuthenticated: as `still_here`.
    """
    await still_here(request)
    async with runtime_of(request).transaction(reach_of(request)) as conn:
        yield conn


@asynccontextmanager
async def looking(request: AnyRequest) -> AsyncIterator[Connection]:
    """As `transaction`, for looking only."""
    await still_here(request)
    async with runtime_of(request).look(reach_of(request)) as conn:
        yield conn


def agent(request: AnyRequest, node_id: str) -> Actor:
    """A caller that acts for a node."""
    return Actor(ActorKind.AGENT, node_id, "api", address_of(request), principal_of(request).key_id)


def operator(request: AnyRequest) -> Actor:
    """A caller under their own name: an agent's program, or a person or operator."""
    principal = principal_of(request)
    kind = ActorKind.AGENT if principal.scopes == {Scope.AGENT} else ActorKind.PERSON
    return Actor(kind, principal.name, "api", address_of(request), principal.key_id)


def label_of(request: AnyRequest, header: str) -> str | None:
    """A header that is kept with a run; None when it was not sent, or is empty.

    Raises:
        FieldFault: it is longer than 255 characters, or not printable ASCII: it is sent on as a header.
    """
    value = request.headers.get(header, "").strip()
    if len(value) > MAX_LABEL or not (value.isascii() and value.isprintable()):
        raise FieldFault(header, f"must be at most {MAX_LABEL} characters of printable ASCII")
    return value or None


def address_of(request: Anybody) -> str | None:
    """The caller's address; behind proxies that are trusted the one that they forward."""
    trusted = runtime_of(request).settings.trusted_proxies
    peer = request.client.host if request.client else None
    forwarded = request.headers.getall("x-forwarded-for", []) if trusted else []
    return client_of(peer, forwarded, trusted)


def base_of(request: AnyRequest) -> str | None:
    """What links to our own pages begin with: the public URL, else a loopback Host; no other Host is echoed."""
    public = runtime_of(request).settings.public_url
    if public is not None:
        return public.rstrip("/")
    host = request.headers.get("host", "")
    return f"{request.url.scheme}://{host}" if _LOOPBACK.fullmatch(host) else None


def fence_of(request: AnyRequest) -> int | None:
    """The number of the dispatch that a caller speaks for; None when it sent none.

    Raises:
        FieldFault: the header holds no whole number of 0 to 2^63 - 1, or came more than once.
    """
    sent = request.headers.getall(FENCE_HEADER, [])
    if not sent:
        return None
    if len(sent) > 1 or not _DIGITS.fullmatch(sent[0]) or int(sent[0]) > _LARGEST_FENCE:
        raise FieldFault(FENCE_HEADER, "must be a whole number")
    return int(sent[0])


@asynccontextmanager
async def present(request: AnyRequest, wait: Wait) -> AsyncIterator[None]:
    """Wake a wait when its caller has gone, so that nobody is waited for on behalf of nobody."""
    watcher = asyncio.create_task(_gone(request))
    watcher.add_done_callback(lambda _: wait.wake())
    try:
        yield
    finally:
        watcher.cancel()


async def _gone(request: AnyRequest) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
