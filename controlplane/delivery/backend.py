"""Connections that go only where the egress rule lets them: look up, judge, connect to a judged address.

What was judged is what is connected to: between the two nothing is looked up again. TLS still names the host. Of a host
with several addresses the first that answers is taken; a refused one refuses them all.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any

import httpcore

from controlplane.delivery.resolver import Resolver, Unresolved
from controlplane.domain import egress
from controlplane.domain.allow_list import Entry
from controlplane.domain.egress import Policy, Refusal, Target
from controlplane.domain.egress_ranges import read

SERVES_SECONDS = 30.0
TRIED_ADDRESSES = 4
LEAST_TURN_SECONDS = 1.0

# What is allowed for the request that a connection is made for, beside the policy. Whoever sets it must see to it that
# no other request is given that connection.
ALLOWANCE: ContextVar[tuple[Entry, ...]] = ContextVar("allowance", default=())

Resolve = Callable[[str], Awaitable[list[str]]]
Dial = Callable[[str, int], Awaitable[httpcore.AsyncNetworkStream]]


class Refused(httpcore.ConnectError):
    """The egress rule says no; the message names no address."""


async def dial(address: str, port: int) -> httpcore.AsyncNetworkStream:
    """A TCP connection to an IP address."""
    return await httpcore.AnyIOBackend().connect_tcp(address, port)


class JudgedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses that the policy allows, and to no others.

    Args:
        policy: what this process may call.
        resolver: looks names up, once for each connection.
        dial: connects to one address; tests see here what is connected to.
        serves_seconds: how long after its judgement a connection takes new requests.
    """

    def __init__(
        self, policy: Policy, resolver: Resolver, *, dial: Dial = dial, serves_seconds: float = SERVES_SECONDS
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._dial = dial
        self._serves_seconds = serves_seconds

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to a host, if each of its addresses may be called.

        Raises:
            httpcore.ConnectError: the host may not be called, has no address, or does not answer.
        """
        addresses = await self._judged(host, port)
        until = asyncio.get_running_loop().time() + self._serves_seconds
        return _Judged(await self._connect(addresses[:TRIED_ADDRESSES], port, timeout), until)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Never: what is called is somewhere in the network."""
        raise Refused("only TCP is called")

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""
        await asyncio.sleep(seconds)

    async def _judged(self, host: str, port: int) -> tuple[str, ...]:
        try:
            judged = await judged_addresses(
                self._policy, self._resolver.resolve, egress.target(host, port), ALLOWANCE.get()
            )
        except Unresolved as fault:
            raise httpcore.ConnectError(str(fault)) from None
        if isinstance(judged, Refusal):
            raise Refused(judged.why(named=False))
        return judged

    async def _connect(
        self, addresses: tuple[str, ...], port: int, timeout: float | None
    ) -> httpcore.AsyncNetworkStream:
        """The first connection that stands; each address but the last has a share of the time."""
        share = None if timeout is None else max(LEAST_TURN_SECONDS, timeout / len(addresses))
        fault = "the connection failed"
        for address in addresses:
            try:
                async with asyncio.timeout(share):
                    return await self._dial(address, port)
            except TimeoutError:
                fault = "the connection took too long"
            except (httpcore.ConnectError, OSError) as error:
                fault = _reason(error)
        raise httpcore.ConnectError(fault)


async def judged_addresses(
    policy: Policy, resolve: Resolve, called: Target | Refusal, allowance: tuple[Entry, ...] = ()
) -> tuple[str, ...] | Refusal:
    """What the rule says of a host once its name is resolved.

    Args:
        policy: what this process may call.
        resolve: finds the addresses of a name.
        called: whom, or why that is not even looked at.
        allowance: what is allowed beside the operator's list.

    Raises:
        Unresolved: the name has no address now.
    """
    if isinstance(called, Refusal):
        return called
    answers = [called.name] if called.literal is not None else await resolve(called.name)
    here = own_among(answers) if any(own.port == called.port for own in policy.own) else ()
    return egress.judge(policy, called, answers, here=here, allowance=allowance)


def own_among(answers: Iterable[str]) -> frozenset[str]:
    """Those of some addresses that are this machine's own."""
    return frozenset(str(address) for address in map(read, answers) if _bindable(str(address)))


def _bindable(address: str) -> bool:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _reason(error: BaseException) -> str:
    """Why a connection failed, in the system's words without the address that stands beside them."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno is not None:
            return os.strerror(cause.errno).lower()
        cause = cause.__cause__ or cause.__context__
    return "the connection failed"


class _Judged(httpcore.AsyncNetworkStream):
    """A connection that says, once its judgement is too old, that it is of no further use."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, until: float) -> None:
        self._stream = stream
        self._until = until

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        return _Judged(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._until)

    def get_extra_info(self, info: str) -> Any:
        """As the connection says; the pool closes an idle one that is readable, which is how it is told here."""
        if info == "is_readable" and asyncio.get_running_loop().time() >= self._until:
            return True
        return self._stream.get_extra_info(info)
