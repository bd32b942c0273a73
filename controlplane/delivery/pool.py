"""Connections kept for reuse: httpx's client over a pool whose every connection the egress rule has judged."""

import ssl
from collections.abc import AsyncIterator
from functools import cache

import httpcore
import httpx

from controlplane.delivery.backend import Refused

KEPT_IDLE_SECONDS = 30.0
FAULTS = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.UnsupportedProtocol)


class JudgedPool(httpx.AsyncBaseTransport):
    """What httpx sends through; its faults are httpcore's own (`FAULTS`).

    Args:
        backend: makes the connections.
        kept_alive: how many idle connections are kept.
        tls: whose certificates are believed; by default those that httpx ships, whatever the environment says.
    """

    def __init__(
        self, backend: httpcore.AsyncNetworkBackend, *, kept_alive: int, tls: ssl.SSLContext | None = None
    ) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or _shipped_certificates(),
            max_connections=None,
            max_keepalive_connections=kept_alive,
            keepalive_expiry=KEPT_IDLE_SECONDS,
            network_backend=backend,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; none with a user name or password in its URL.

        Raises:
            Refused: it may not be sent there.
        """
        if request.url.userinfo:
            raise Refused("the URL holds a user name or password, which is never sent")
        reply = await self._pool.handle_async_request(
            httpcore.Request(
                method=request.method,
                url=httpcore.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(reply.status, headers=reply.headers, stream=_Body(reply), extensions=reply.extensions)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


@cache
def _shipped_certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


class _Body(httpx.AsyncByteStream):
    def __init__(self, reply: httpcore.Response) -> None:
        self._reply = reply

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._reply.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._reply.aclose()
