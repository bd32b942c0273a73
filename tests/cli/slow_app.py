"""A small ASGI application for the tests of the serving process: it reads its body, or refuses it, or waits."""

import asyncio
from typing import Any


class SlowApp:
    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = asyncio.Event()
        self.started = 0
        self.disconnected = asyncio.Event()

    def closing(self) -> None:
        self.release.set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(receive, send)
            return
        self.started += 1
        if scope["path"] == "/refuse":
            await answer(send, 413, b"no")
            return
        body = b""
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                return
            body += message["body"]
            more = message["more_body"]
        if scope["path"] == "/wait":
            self.waiting.set()
            await self.release.wait()
        await answer(send, 200, str(len(body)).encode())

    async def lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
