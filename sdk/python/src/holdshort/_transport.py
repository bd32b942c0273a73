"""The only module that opens sockets, by httpx; imported when the first request is sent."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import cache
from typing import Any, Protocol

import httpx

from holdshort._core import Call, Reply, Unreachable

_CONNECT_S = 5.0
_AT_ONCE = 32
_STREAM_SILENCE_S = 90.0


class AsyncTransport(Protocol):
    """Sends one request; `holdshort.testing` has another one without a network."""

    async def exchange(self, call: Call[Any]) -> Reply:
        """Send and return the answer; raises Unreachable when none came."""

    def stream(self, call: Call[Any]) -> AbstractAsyncContextManager[tuple[Reply, AsyncIterator[str]]]:
        """Send and return the answer's head with the lines of its body as they come."""

    async def aclose(self) -> None:
        """Close what is open."""


class Transport(Protocol):
    """As AsyncTransport, without await."""

    def exchange(self, call: Call[Any]) -> Reply:
        """Send and return the answer; raises Unreachable when none came."""

    def stream(self, call: Call[Any]) -> AbstractContextManager[tuple[Reply, Iterator[str]]]:
        """Send and return the answer's head with the lines of its body as they come."""

    def close(self) -> None:
        """Close what is open."""


def _client_options(base_url: str, headers: dict[str, str]) -> dict[str, Any]:
    return {
        "base_url": base_url,
        "headers": headers,
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=_AT_ONCE),
        "follow_redirects": False,
        "verify": _trusted(),
    }


@cache
def _trusted() -> ssl.SSLContext:
    """The certificates that are trusted, read once: that takes 40 ms, in which an event loop would stand still."""
    return httpx.create_ssl_context()


def _request(call: Call[Any], silence: float) -> dict[str, Any]:
    headers = dict(call.headers)
    if call.body is not None:
        headers.setdefault("content-type", "application/json")
    return {
        "method": call.method,
        "url": call.path,
        "params": call.query or None,
        "content": call.body,
        "headers": headers,
        "timeout": httpx.Timeout(silence, connect=_CONNECT_S, pool=None),
    }


def _reply(answer: httpx.Response, content: bytes) -> Reply:
    return Reply(answer.status_code, {name.lower(): value for name, value in answer.headers.items()}, content)


def _reason(error: httpx.HTTPError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class HttpxAsyncTransport:
    """Over the network. At most 32 short requests are in flight; held ones (waits, streams) do not count.

    Args:
        base_url: of the control plane.
        headers: sent with every request.
    """

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self._client = httpx.AsyncClient(**_client_options(base_url, headers))
        # httpx's pool looks at every waiting request each time one ends; a semaphore does not.
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def exchange(self, call: Call[Any]) -> Reply:
        """Send and return the answer; raises Unreachable when none came."""
        if call.hold:
            return await self._send(call)
        async with self._slots:
            return await self._send(call)

    async def _send(self, call: Call[Any]) -> Reply:
        try:
            answer = await self._client.request(**_request(call, call.reply + call.hold))
        except httpx.HTTPError as error:
            raise Unreachable(_reason(error)) from error
        return _reply(answer, answer.content)

    @asynccontextmanager
    async def stream(self, call: Call[Any]) -> AsyncIterator[tuple[Reply, AsyncIterator[str]]]:
        """Send and return the answer's head with the lines of its body as they come."""
        try:
            async with self._client.stream(**_request(call, _STREAM_SILENCE_S)) as answer:
                content = b"" if answer.is_success else await answer.aread()
                yield _reply(answer, content), answer.aiter_lines()
        except httpx.HTTPError as error:
            raise Unreachable(_reason(error)) from error

    async def aclose(self) -> None:
        """Close what is open."""
        await self._client.aclose()


class HttpxTransport:
    """As HttpxAsyncTransport, without await; its requests are the caller's threads, so none are counted."""

    def __init__(self, base_url: str, headers: dict[str, str]) -> None:
        self._client = httpx.Client(**_client_options(base_url, headers))

    def exchange(self, call: Call[Any]) -> Reply:
        """Send and return the answer; raises Unreachable when none came."""
        try:
            answer = self._client.request(**_request(call, call.reply + call.hold))
        except httpx.HTTPError as error:
            raise Unreachable(_reason(error)) from error
        return _reply(answer, answer.content)

    @contextmanager
    def stream(self, call: Call[Any]) -> Iterator[tuple[Reply, Iterator[str]]]:
        """Send and return the answer's head with the lines of its body as they come."""
        try:
            with self._client.stream(**_request(call, _STREAM_SILENCE_S)) as answer:
                content = b"" if answer.is_success else answer.read()
                yield _reply(answer, content), answer.iter_lines()
        except httpx.HTTPError as error:
            raise Unreachable(_reason(error)) from error

    def close(self) -> None:
        """Close what is open."""
        self._client.close()
