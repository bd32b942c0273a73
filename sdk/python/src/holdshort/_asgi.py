"""The agent over HTTP: POST /reasoners/{name}, POST /webhooks/approval, GET /health. No framework."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec

from holdshort import _callbacks, _calls
from holdshort._agent import Agent
from holdshort._calls import Answered, Calls
from holdshort._runner import CALLBACK_PATH

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_BODY_LIMIT = 1024 * 1024
_EXECUTION_ID = re.compile(r"[A-Za-z0-9._~:-]{1,128}")


class _TooLarge(Exception):
    """The body is over the limit."""


class AgentApp:
    """An agent's ASGI application.

    Args:
        agent: whose reasoners it serves.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
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
            return self._health() if method in {"GET", "HEAD"} else _calls.wrong_method("GET")
        if path != CALLBACK_PATH and not path.startswith("/reasoners/"):
            return _calls.problem(404, "not_found", "this agent serves /reasoners/{name}, /webhooks/approval, /health")
        if method != "POST":
            return _calls.wrong_method("POST")
        try:
            body = await _body(receive)
        except _TooLarge:
            return _calls.problem(413, "body_too_large", f"the body is over {_BODY_LIMIT} bytes")
        headers = _headers(scope)
        if path == CALLBACK_PATH:
            return Answered(*_callbacks.receive(self._agent.registry, headers, body))
        return await self._reasoner(path.removeprefix("/reasoners/"), headers, body)

    async def _reasoner(self, name: str, headers: Mapping[str, str], body: bytes) -> Answered:
        execution_id = headers.get("x-execution-id") or None
        if execution_id is not None and not _EXECUTION_ID.fullmatch(execution_id):
            rule = "1-128 of A-Z a-z 0-9 . _ ~ : -"
            return _calls.invalid("X-Execution-ID", rule)
        try:
            raw = msgspec.json.decode(body) if body else {}
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _calls.problem(400, "invalid_body", "the body is not JSON")
        return await self.call(name, raw, execution_id)

    def _health(self) -> Answered:
        reasoners = [
            {"name": each.name, "timeout_seconds": each.timeout_seconds, "resume": each.resume}
            for each in self._agent.reasoners.values()
        ]
        known = {"node_id": self._agent.node_id, "version": self._agent.version, "reasoners": reasoners}
        return Answered(200, {"status": "draining" if self._agent.registry.draining else "ok", **known})

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await self._start(send)
            elif message["type"] == "lifespan.shutdown":
                await self._calls.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _start(self, send: Send) -> None:
        try:
            for reasoner in self._agent.reasoners.values():
                reasoner.check()
        except (TypeError, NameError) as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.startup.complete"})


def _path(scope: Scope) -> str:
    """The path below where the application is mounted; some hosts leave the mount in, some end it with a slash."""
    path: str = scope["path"]
    root: str = scope.get("root_path") or ""
    below = path.removeprefix(root) if root and path.startswith(root + "/") else path
    return below.rstrip("/")


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


async def _body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise asyncio.CancelledError
        part = message.get("body", b"")
        size += len(part)
        if size > _BODY_LIMIT:
            raise _TooLarge
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
