"""Sending a callback: one bounded POST, no redirects, no proxy, at most 64 KiB of the reply read."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.metadata import version
from typing import Any

import httpcore
import httpx

from controlplane.delivery.backend import ALLOWANCE, Refused
from controlplane.delivery.pool import FAULTS, JudgedPool
from controlplane.domain.allow_list import Entry
from controlplane.domain.deliveries import REPLY_LIMIT_BYTES, SEND_DEADLINE_SECONDS, Attempt
from controlplane.domain.errors import CallbackUrlRefused

USER_AGENT = f"holdshort/{version('holdshort-server')}"
BeforeWriting = Callable[[], Awaitable[None]]


class Transport:
    """The only way out of the server.

    Args:
        backend: makes the connections, to what may be called.
        kept_alive: how many idle connections are kept for reuse. With none, a request never meets a connection that
            its receiver closed meanwhile, so that one which got no reply was really written to somebody.
    """

    def __init__(self, backend: httpcore.AsyncNetworkBackend, *, kept_alive: int = 100) -> None:
        """Open nothing yet."""
        self._shared = _client(JudgedPool(backend, kept_alive=kept_alive))
        # What only some may call is not left open for others.
        self._single = _client(JudgedPool(backend, kept_alive=0)) if kept_alive else self._shared

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        before_writing: BeforeWriting | None = None,
        allowance: tuple[Entry, ...] = (),
    ) -> Attempt:
        """Send a body and return what came of it; no failure of the receiver is raised.

        Args:
            url: where to.
            body: the exact bytes.
            headers: beside the content type and the user agent.
            before_writing: awaited once a connection stands and before the first byte is written; what it raises
                ends the try and reaches the caller.
            allowance: what this request may call beside what the server may.
        """
        writing = _Writing(before_writing)
        allowed = ALLOWANCE.set(allowance)
        try:
            async with asyncio.timeout(SEND_DEADLINE_SECONDS):
                return await self._post(self._single if allowance else self._shared, url, body, headers, writing)
        except TimeoutError:
            return Attempt(error=f"no reply within {SEND_DEADLINE_SECONDS:g} s", written=writing.begun)
        except Refused as refusal:
            return Attempt(error=f"{CallbackUrlRefused.code}: {refusal}")
        except (*FAULTS, httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            return Attempt(error=_reason(error), written=writing.begun)
        finally:
            ALLOWANCE.reset(allowed)

    async def close(self) -> None:
        """Close every connection."""
        await self._shared.aclose()
        await self._single.aclose()

    async def _post(
        self, client: httpx.AsyncClient, url: str, body: bytes, headers: Mapping[str, str], writing: "_Writing"
    ) -> Attempt:
        extensions = {"trace": writing.trace}
        all_headers = {"Content-Type": "application/json", **headers}
        async with client.stream("POST", url, content=body, headers=all_headers, extensions=extensions) as reply:
            return Attempt(status=reply.status_code, reply=await _read(reply), written=True)


class _Writing:
    """Sees when a request's first byte is about to be written; from then on its receiver may know of it."""

    def __init__(self, before: BeforeWriting | None) -> None:
        self._before = before
        self.begun = False

    async def trace(self, event: str, _: Mapping[str, Any]) -> None:
        if event == "http11.send_request_headers.started":
            if self._before is not None:
                await self._before()
            self.begun = True


def _client(pool: JudgedPool) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=pool,
        follow_redirects=False,
        trust_env=False,
        timeout=SEND_DEADLINE_SECONDS,
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
    )


def _reason(error: Exception) -> str:
    """Why there is no reply, without what the receiver sent or what stands in its URL."""
    if isinstance(error, httpcore.NetworkError | httpcore.TimeoutException | OSError):
        why = str(error)[:500]
    elif isinstance(error, httpcore.ProtocolError):
        why = str(error).partition(":")[0]  # the bytes that were no HTTP are quoted behind it
    else:
        why = ""
    return f"{type(error).__name__}: {why}" if why else type(error).__name__


async def _read(reply: httpx.Response) -> bytes:
    """The first part of a reply; whoever sends more is not listened to any longer."""
    read = bytearray()
    async for chunk in reply.aiter_raw():
        read += chunk
        if len(read) >= REPLY_LIMIT_BYTES:
            break
    return bytes(read[:REPLY_LIMIT_BYTES])
