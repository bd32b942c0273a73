"""What handlers of pages are given: who looks, as whom they act, and a transaction while they are still signed in."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

from litestar import Request

from controlplane.domain.errors import NotAuthenticated
from controlplane.domain.events import Actor, ActorKind
from controlplane.edge.deps import address_of, runtime_of
from controlplane.inbox.viewers import Viewer
from controlplane.storage.engine import Connection

__all__ = ["Viewer", "actor_of", "holding", "looking", "runtime_of", "still_here", "transaction", "viewer_of"]

Asked = Request[Any, Any, Any]


def viewer_of(request: Asked) -> Viewer:
    """Who looks, as `inbox.guard` found."""
    viewer: Viewer = request.state.viewer
    return viewer


def actor_of(request: Asked) -> Actor:
    """A person who does something here, under their key's name: nothing that they type names them."""
    viewer = viewer_of(request)
    return Actor(ActorKind.PERSON, viewer.name, "inbox", address_of(request), viewer.key_id)


async def still_here(request: Asked) -> None:
    """Make sure that who came is still signed in: a form may have come slowly, or a stream been held open.

    Raises:
        NotAuthenticated: the session, its key or the open mode has ended.
    """
    signed, runtime = viewer_of(request).signed, runtime_of(request)
    if signed is None:
        if not runtime.open:
            raise NotAuthenticated
    elif await runtime.sessions.standing(signed) is None:
        raise NotAuthenticated


@asynccontextmanager
async def transaction(request: Asked) -> AsyncIterator[Connection]:
    """A transaction of a person who is still signed in.

    Raises:
        NotAuthenticated: as `still_here`.
    """
    await still_here(request)
    async with runtime_of(request).transaction() as conn:
        yield conn


@asynccontextmanager
async def looking(request: Asked) -> AsyncIterator[Connection]:
    """As `transaction`, for looking only."""
    await still_here(request)
    async with runtime_of(request).look() as conn:
        yield conn


def holding(request: Asked, end: Callable[[], None]) -> AbstractContextManager[None]:
    """While a page's stream is open: `end` is called when its session, the key of that, or the open mode has ended."""
    return runtime_of(request).sessions.holding(viewer_of(request).signed, end)
