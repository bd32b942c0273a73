"""Client and AsyncClient: one method per route, both made from the same functions; the shells only send."""

import asyncio
import inspect
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import wraps
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from holdshort import _core, _routes
from holdshort._core import Again, Call, Reply, Unreachable
from holdshort._errors import ConnectionFailed
from holdshort._stream import Subscription
from holdshort._version import __version__
from holdshort._wire import Event

if TYPE_CHECKING:
    from holdshort._transport import AsyncTransport, Transport

P = ParamSpec("P")
T = TypeVar("T")
DEFAULT_URL = "http://127.0.0.1:8080"
_WARN_EVERY = 8
log = logging.getLogger("holdshort")


def base_url(given: str | None) -> str:
    """The control plane's address: the argument, HOLDSHORT_URL, or this machine's port 8080.

    Raises:
        ConnectionFailed: it is no http(s) address, so no try could ever reach anything.
    """
    address = (given or os.environ.get("HOLDSHORT_URL") or DEFAULT_URL).rstrip("/")
    if not address.lower().startswith(("http://", "https://")):
        raise ConnectionFailed(f"the control plane's address must begin with http:// or https://, not {address!r}")
    return address


def headers_for(api_key: str | None) -> dict[str, str]:
    """What every request carries; the key is the argument or HOLDSHORT_API_KEY."""
    key = api_key or os.environ.get("HOLDSHORT_API_KEY")
    agent = {"user-agent": f"holdshort-python/{__version__}"}
    return {**agent, "authorization": f"Bearer {key}"} if key else agent


def _signature(route: Callable[..., Any], result: object) -> inspect.Signature:
    known = inspect.signature(route)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return known.replace(parameters=[own, *known.parameters.values()], return_annotation=result)


def _awaited(
    route: Callable[P, Call[T]],
) -> "Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]":
    @wraps(route)
    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.send(route(*args, **kwargs))

    method.__signature__ = _signature(route, _result(route))  # type: ignore[attr-defined]
    return method


def _blocking(route: Callable[P, Call[T]]) -> "Callable[Concatenate[Client, P], T]":
    @wraps(route)
    def method(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.send(route(*args, **kwargs))

    method.__signature__ = _signature(route, _result(route))  # type: ignore[attr-defined]
    return method


def _result(route: Callable[..., Any]) -> object:
    return inspect.signature(route).return_annotation.__args__[0]


class _Attempts:
    """Counts and times the tries of one call; the clock and the dice of both clients are read here."""

    def __init__(self, call: Call[Any], patience: float | None) -> None:
        self._call = call
        self._until = None if patience is None else time.monotonic() + patience
        self._tries = 0

    def call(self) -> Call[Any]:
        return _core.within(self._call, self._left())

    def judge(self, outcome: Reply | Unreachable) -> Again | Reply:
        self._tries += 1
        jitter = random.random()  # noqa: S311  # no secret
        verdict = _core.judge(self._call, outcome, self._tries, self._left(), jitter=jitter)
        if isinstance(verdict, Again) and self._tries % _WARN_EVERY == 0:
            said = outcome.status if isinstance(outcome, Reply) else outcome
            log.warning("still trying %s %s after %d times: %s", self._call.method, self._call.path, self._tries, said)
        return verdict

    def _left(self) -> float | None:
        return None if self._until is None else self._until - time.monotonic()


class AsyncClient:
    """The control plane's routes for programs that are no agent, awaited.

    Every call is repeated through connection failures, 429, 502, 503 and 504 for `patience` seconds. Use it as an
    async context manager, or call `aclose()`.

    Args:
        control_plane_url: HOLDSHORT_URL, or http://127.0.0.1:8080, when absent.
        api_key: HOLDSHORT_API_KEY when absent.
        patience: seconds to go on trying; None for as long as the caller waits.
        transport: something that sends instead of the network, see `holdshort.testing`.
    """

    def __init__(
        self,
        control_plane_url: str | None = None,
        api_key: str | None = None,
        *,
        patience: float | None = _core.PATIENCE_S,
        transport: "AsyncTransport | None" = None,
    ) -> None:
        self._url = base_url(control_plane_url)
        self._headers = headers_for(api_key)
        self._patience = patience
        self._transport = transport

    create_execution = _awaited(_routes.create_execution)
    get_execution = _awaited(_routes.get_execution)
    list_executions = _awaited(_routes.list_executions)
    report_status = _awaited(_routes.report_status)
    cancel_execution = _awaited(_routes.cancel_execution)
    add_note = _awaited(_routes.add_note)
    request_approval = _awaited(_routes.request_approval)
    get_approval_status = _awaited(_routes.get_approval_status)
    wait_for_approvals = _awaited(_routes.wait_for_approvals)
    list_approvals = _awaited(_routes.list_approvals)
    get_approval = _awaited(_routes.get_approval)
    set_callback = _awaited(_routes.set_callback)
    decide = _awaited(_routes.decide)
    answer_execution = _awaited(_routes.answer_execution)
    withdraw = _awaited(_routes.withdraw)
    expire = _awaited(_routes.expire)
    send_webhook = _awaited(_routes.send_webhook)
    list_parked = _awaited(_routes.list_parked)
    list_deliveries = _awaited(_routes.list_deliveries)
    redrive = _awaited(_routes.redrive)

    async def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call until it is answered.

        Args:
            call: from one of the route functions.
            patience: seconds for this call; None for any, the client's own when absent.

        Raises:
            HoldshortError: the control plane refused, or could not be reached in time.
        """
        attempts = _Attempts(call, self._patience if isinstance(patience, EllipsisType) else patience)
        while True:
            verdict = attempts.judge(await self._try(attempts.call()))
            if isinstance(verdict, Reply):
                return _core.read(call, verdict)
            await asyncio.sleep(verdict.delay)

    async def _try(self, call: Call[Any]) -> Reply | Unreachable:
        try:
            return await self._sender().exchange(call)
        except Unreachable as failure:
            return failure

    def _sender(self) -> "AsyncTransport":
        if self._transport is None:
            from holdshort._transport import HttpxAsyncTransport  # noqa: PLC0415  # importing holdshort stays cheap

            self._transport = HttpxAsyncTransport(self._url, self._headers)
        return self._transport

    async def events(
        self,
        *,
        execution_id: str | None = None,
        types: Sequence[str] = (),
        after: str | None = None,
        from_now: bool = False,
    ) -> AsyncIterator[Event]:
        """History rows as they happen; a broken stream is resumed after the last one seen.

        Args:
            execution_id: only this execution's rows.
            types: only these types of rows.
            after: the id of the last event that was seen; from the beginning of what is kept when absent.
            from_now: only what happens from now on.

        Raises:
            ConnectionFailed: the stream could not be had back for `patience` seconds.
        """
        subscription = Subscription(
            execution_id=execution_id, types=types, after=after, from_now=from_now, patience=self._patience
        )
        while True:
            try:
                async for event in self._connection(subscription):
                    yield event
            except Unreachable as failure:
                await asyncio.sleep(subscription.lost(failure, time.monotonic(), random.random()))  # noqa: S311

    async def _connection(self, subscription: Subscription) -> AsyncIterator[Event]:
        async with self._sender().stream(subscription.call()) as (reply, lines):
            subscription.opened(reply)
            async for line in lines:
                if event := subscription.feed(line):
                    yield event
        raise Unreachable("the stream ended")

    async def aclose(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()


class Client:
    """As AsyncClient, without await, for scripts and threads; use it in `with`, or call `close()`.

    Args:
        control_plane_url: HOLDSHORT_URL, or http://127.0.0.1:8080, when absent.
        api_key: HOLDSHORT_API_KEY when absent.
        patience: seconds to go on trying; None for as long as it takes.
        transport: something that sends instead of the network, see `holdshort.testing`.
    """

    def __init__(
        self,
        control_plane_url: str | None = None,
        api_key: str | None = None,
        *,
        patience: float | None = _core.PATIENCE_S,
        transport: "Transport | None" = None,
    ) -> None:
        self._url = base_url(control_plane_url)
        self._headers = headers_for(api_key)
        self._patience = patience
        self._transport = transport

    create_execution = _blocking(_routes.create_execution)
    get_execution = _blocking(_routes.get_execution)
    list_executions = _blocking(_routes.list_executions)
    report_status = _blocking(_routes.report_status)
    cancel_execution = _blocking(_routes.cancel_execution)
    add_note = _blocking(_routes.add_note)
    request_approval = _blocking(_routes.request_approval)
    get_approval_status = _blocking(_routes.get_approval_status)
    wait_for_approvals = _blocking(_routes.wait_for_approvals)
    list_approvals = _blocking(_routes.list_approvals)
    get_approval = _blocking(_routes.get_approval)
    set_callback = _blocking(_routes.set_callback)
    decide = _blocking(_routes.decide)
    answer_execution = _blocking(_routes.answer_execution)
    withdraw = _blocking(_routes.withdraw)
    expire = _blocking(_routes.expire)
    send_webhook = _blocking(_routes.send_webhook)
    list_parked = _blocking(_routes.list_parked)
    list_deliveries = _blocking(_routes.list_deliveries)
    redrive = _blocking(_routes.redrive)

    def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call until it is answered.

        Args:
            call: from one of the route functions.
            patience: seconds for this call; None for any, the client's own when absent.

        Raises:
            HoldshortError: the control plane refused, or could not be reached in time.
        """
        attempts = _Attempts(call, self._patience if isinstance(patience, EllipsisType) else patience)
        while True:
            verdict = attempts.judge(self._try(attempts.call()))
            if isinstance(verdict, Reply):
                return _core.read(call, verdict)
            time.sleep(verdict.delay)

    def _try(self, call: Call[Any]) -> Reply | Unreachable:
        try:
            return self._sender().exchange(call)
        except Unreachable as failure:
            return failure

    def _sender(self) -> "Transport":
        if self._transport is None:
            from holdshort._transport import HttpxTransport  # noqa: PLC0415  # importing holdshort stays cheap

            self._transport = HttpxTransport(self._url, self._headers)
        return self._transport

    def events(
        self,
        *,
        execution_id: str | None = None,
        types: Sequence[str] = (),
        after: str | None = None,
        from_now: bool = False,
    ) -> Iterator[Event]:
        """History rows as they happen; a broken stream is resumed after the last one seen.

        Args:
            execution_id: only this execution's rows.
            types: only these types of rows.
            after: the id of the last event that was seen; from the beginning of what is kept when absent.
            from_now: only what happens from now on.

        Raises:
            ConnectionFailed: the stream could not be had back for `patience` seconds.
        """
        subscription = Subscription(
            execution_id=execution_id, types=types, after=after, from_now=from_now, patience=self._patience
        )
        while True:
            try:
                yield from self._connection(subscription)
            except Unreachable as failure:
                time.sleep(subscription.lost(failure, time.monotonic(), random.random()))  # noqa: S311

    def _connection(self, subscription: Subscription) -> Iterator[Event]:
        with self._sender().stream(subscription.call()) as (reply, lines):
            subscription.opened(reply)
            for line in lines:
                if event := subscription.feed(line):
                    yield event
        raise Unreachable("the stream ended")

    def close(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
