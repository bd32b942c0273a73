"""What both clients are made of: routes as methods, the headers, and the tries of one call."""

import inspect
import logging
import random
import time
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from holdshort import _core
from holdshort._core import Again, Call, Reply, Unreachable
from holdshort._version import __version__

if TYPE_CHECKING:
    from holdshort._blocking_client import Client
    from holdshort._client import AsyncClient

P = ParamSpec("P")
T = TypeVar("T")
_WARN_EVERY = 8
log = logging.getLogger("holdshort")


def headers_for(key: str | None) -> dict[str, str]:
    """What every request carries."""
    agent = {"user-agent": f"holdshort-python/{__version__}"}
    return {**agent, "authorization": f"Bearer {key}"} if key else agent


def _signature(route: Callable[..., Any], result: object) -> inspect.Signature:
    known = inspect.signature(route)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return known.replace(parameters=[own, *known.parameters.values()], return_annotation=result)


def awaited(
    route: Callable[P, Call[T]],
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    """A route as a method of AsyncClient."""

    @wraps(route)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(route(*args, **kwargs))

    method.__signature__ = _signature(route, _result(route))  # type: ignore[attr-defined]
    return method


def blocking(route: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    """A route as a method of Client."""

    @wraps(route)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(route(*args, **kwargs))

    method.__signature__ = _signature(route, _result(route))  # type: ignore[attr-defined]
    return method


def _result(route: Callable[..., Any]) -> object:
    return inspect.signature(route).return_annotation.__args__[0]


class Attempts:
    """Counts and times the tries of one call; the clock and the dice of both clients are read here."""

    def __init__(self, call: Call[Any], patience: float | None) -> None:
        self._call = call
        self._until = None if patience is None else time.monotonic() + patience
        self._tries = 0

    def call(self) -> Call[Any]:
        """The call for the next try."""
        return _core.within(self._call, self._left())

    def judge(self, outcome: Reply | Unreachable) -> Again | Reply:
        """Whether to send it again."""
        self._tries += 1
        jitter = random.random()  # noqa: S311  # no secret
        verdict = _core.judge(self._call, outcome, self._tries, self._left(), jitter=jitter)
        if isinstance(verdict, Again) and self._tries % _WARN_EVERY == 0:
            said = outcome.status if isinstance(outcome, Reply) else outcome
            log.warning("still trying %s %s after %d times: %s", self._call.method, self._call.path, self._tries, said)
        return verdict

    def _left(self) -> float | None:
        return None if self._until is None else self._until - time.monotonic()
