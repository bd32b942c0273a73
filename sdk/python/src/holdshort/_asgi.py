"""The agent over HTTP: its reasoners, callbacks, cancellations and GET /health, without a framework."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from functools import partial
from typing import Any

import msgspec

from holdshort import _answers, _callbacks
from holdshort._agent import Agent
from holdshort._answers import Answered
from holdshort._calls import Calls
from holdshort._dispatches import Order, cancellation_of, order_of
from holdshort._lifetime import Lifetime
from holdshort._runner import CALLBACK_PATH
from holdshort._runs import FENCE_HEADER

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Posted = Callable[[Mapping[str, str], bytes], Awaitable[Answered]]

_BODY_LIMIT = 1024 * 1024
_DISPATCH_LIMIT = 8 * _BODY_LIMIT
_REASONERS = "/reasoners/"
_CANCEL = re.compile(r"/_internal/executions/([^/]+)/cancel")
_EXECUTION_ID = re.compile(r"[A-Za-z0-9._~:-]{1,128}")


class _TooLarge(Exception):
    """The body is over the limit, which is the argument."""


class AgentApp:
    """An agent's ASGI application.

    Args:
        agent: whose reasoners it serves.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.lifetime = Lifetime(agent)
        self._dispatches = self.lifetime.dispatches
        self._calls = Calls(agent)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection: http and lifespan; a websocket is closed."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await _send(send, await self._answer(scope, receive))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})

    async def call(self, name: str, raw: Any, execution_id: str | None = None) -> Answered:
        """Call a reasoner as POST /reasoners/{name} does; the same execution id joins a call that is running."""
        return await self._calls.call(name, raw, execution_id)

    async def _answer(self, scope: Scope, receive: Receive) -> Answered:
        path = _path(scope)
        method = scope["method"]
        if path == "/health":
            return self._health() if method in {"GET", "HEAD"} else _answers.wrong_method("GET")
        take = self._posted(path)
        if take is None:
            return _answers.problem(
                404, "not_found", "this agent serves /reasoners/{name}, /webhooks/approval, /health"
            )
        if method != "POST":
            return _answers.wrong_method("POST")
        headers = _headers(scope)
        try:
            body = await _body(receive, _DISPATCH_LIMIT if FENCE_HEADER in headers else _BODY_LIMIT)
        except _TooLarge as fault:
            return _answers.problem(413, "body_too_large", f"the body is over {fault} bytes")
        return await take(headers, body)

    def _posted(self, path: str) -> Posted | None:
        """What takes a POST to this path; None where nothing does."""
        if path == CALLBACK_PATH:
            return self._callback
        if path.startswith(_REASONERS):
            return partial(self._reasoner, path.removeprefix(_REASONERS))
        cancelled = _CANCEL.fullmatch(path)
        return partial(self._cancel, cancelled[1]) if cancelled else None

    async def _callback(self, headers: Mapping[str, str], body: bytes) -> Answered:
        return Answered(*_callbacks.receive(self._agent.registry, headers, body))

    async def _reasoner(self, name: str, headers: Mapping[str, str], body: bytes) -> Answered:
        execution_id = headers.get("x-execution-id") or None
        if execution_id is not None and not _EXECUTION_ID.fullmatch(execution_id):
            rule = "1-128 of A-Z a-z 0-9 . _ ~ : -"
            return _answers.invalid("X-Execution-ID", rule)
        try:
            raw = msgspec.json.decode(body) if body else {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _answers.problem(400, "invalid_body", "the body is not JSON")
        order = order_of(headers, execution_id)
        if isinstance(order, Order):
            return self._dispatches.take(name, raw, order)
        if execution_id is not None and execution_id in self._dispatches:
            taken = f"execution {execution_id} is running here, as the control plane dispatched it"
            return _answers.problem(409, "execution_exists", taken)
        return order or await self.call(name, raw, execution_id)

    async def _cancel(self, execution_id: str, headers: Mapping[str, str], body: bytes) -> Answered:
        known = cancellation_of(headers, body)
        return known if isinstance(known, Answered) else self._dispatches.cancel(execution_id, *known)

    def _health(self) -> Answered:
        reasoners = [
            {"name": each.name, "timeout_seconds": each.timeout_seconds, "resume": each.resume}
            for each in self._agent.reasoners.values()
        ]
        known = {"node_id": self._agent.node_id, "version": self._agent.version, "reasoners": reasoners}
        status = "draining" if self._agent.registry.draining else "ok"
        return Answered(200, {"status": status, "registered": self.lifetime.registered, **known})

    def begin(self) -> None:
        """Check every reasoner and register, as soon as an address is known.

        Raises:
            TypeError: an annotation that no JSON can be converted to.
            NameError: an annotation that cannot be resolved.
        """
        for reasoner in self._agent.reasoners.values():
            reasoner.check()
        self.lifetime.begin()

    async def end(self) -> None:
        """Hand back what waits, let what runs finish for some seconds, and go."""
        self.lifetime.begin_to_end()
        await self._calls.stop()
        await self.lifetime.end()

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    self.begin()
                except (TypeError, NameError) as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                else:
                    await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.end()
                await send({"type": "lifespan.shutdown.complete"})
                return


def _path(scope: Scope) -> str:
    """The path below where the application is mounted; some hosts leave the mount in, some end it with a slash."""
    path: str = scope["path"]
    root: str = scope.get("root_path") or ""
    below = path.removeprefix(root) if root and path.startswith(root + "/") else path
    return below.rstrip("/")


def _headers(scope: Scope) -> dict[str, str]:
    """By their names in lower case; one that was sent more than once is all its values, and means none of them."""
    found: dict[str, str] = {}
    for raw, value in scope["headers"]:
        name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


async def _body(receive: Receive, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise asyncio.CancelledError
        part = message.get("body", b"")
        size += len(part)
        if size > limit:
            raise _TooLarge(limit)
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def _send(send: Send, answered: Answered) -> None:
    kind = b"application/problem+json" if answered.status >= 400 else b"application/json"
    content = msgspec.json.encode(answered.body)
    headers = [(b"content-type", kind), (b"content-length", str(len(content)).encode())]
    headers += [(name.encode(), value.encode()) for name, value in answered.headers.items()]
    await send({"type": "http.response.start", "status": answered.status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
