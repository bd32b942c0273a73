"""Real servers on loopback for the SDK's tests, and the testing control plane behind real HTTP."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import uvicorn
from holdshort import Approval
from holdshort._core import Call, Reply, Unreachable
from holdshort.testing import ControlPlane
from holdshort.webhooks import sign


@asynccontextmanager
async def serving(app: Any, port: int = 0) -> AsyncIterator[str]:
    """The application on a real loopback socket."""
    config = uvicorn.Config(app, port=port, log_level="error", lifespan="auto", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    started = asyncio.Event()
    startup = server.startup

    async def told(sockets: Any = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = told  # type: ignore[method-assign]
    task = asyncio.create_task(server._serve())
    await asyncio.wait({task, asyncio.create_task(started.wait())}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


class Wire:
    """The testing control plane behind real HTTP, which also pushes callbacks."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        pairs = [part.split("=", 1) for part in scope["query_string"].decode().split("&") if part]
        query = tuple((k, httpx.QueryParams(f"x={v}")["x"]) for k, v in pairs)
        headers = {k.decode(): v.decode() for k, v in scope["headers"]}
        call: Call[Any] = Call(
            method=scope["method"], path=scope["path"], query=query, body=body or None, headers=headers, reads=object
        )
        if scope["path"].endswith("/events"):
            await self._stream(call, send)
            return
        work = asyncio.ensure_future(self._reply(call))
        gone = asyncio.ensure_future(receive())
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            gone.cancel()
            reply = work.result()
            names = [(k.encode(), v.encode()) for k, v in reply.headers.items()]
            await send({"type": "http.response.start", "status": reply.status, "headers": names})
            await send({"type": "http.response.body", "body": reply.body})
        work.cancel()

    async def _reply(self, call: Call[Any]) -> Reply:
        try:
            return await self.plane.transport.exchange(call)
        except Unreachable:
            return Reply(503, {"retry-after": "0"}, b'{"error":"database_unavailable"}')

    async def _stream(self, call: Call[Any], send: Any) -> None:
        head = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        async with self.plane.transport.stream(call) as (_, lines):
            async for line in lines:
                await send({"type": "http.response.body", "body": f"{line}\n".encode(), "more_body": True})

    async def push(self, approval: Approval, *, secret: str | None = None, now: int = 0) -> httpx.Response:
        """The callback of a final approval, as the control plane sends it."""
        kept = self.plane._book.approvals[approval.approval_id]
        body = callback_body(approval, kept.status, kept.feedback, kept.data)
        headers = sign(secret or kept.ask.callback_secret or "", body, now=now, webhook_id=approval.approval_id)
        async with httpx.AsyncClient() as client:
            return await client.post(kept.ask.callback_url or "", content=body, headers=headers)


def callback_body(approval: Approval, decision: str, feedback: str = "", data: Any = None) -> bytes:
    return msgspec.json.encode(
        {
            "execution_id": approval.execution_id,
            "approval_request_id": approval.approval_request_id,
            "approval_id": approval.approval_id,
            "round": approval.round,
            "decision": decision,
            "new_status": "running",
            "feedback": feedback,
            "data": data,
            "response": data,
        }
    )


async def eventually(condition: Callable[[], Any], seconds: float = 5.0) -> None:
    """Wait for a condition that nothing announces, within a bound."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.005)
