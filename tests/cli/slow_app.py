"""A small ASGI application for the tests of the serving process: it reads its body, or refuses it, or waits."""

import asyncio
from typing import Any


class SlowApp:
    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = asyncio.Event()
        self.started = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.cut_off = asyncio.Event()
        self._waiting = 0
        self._counted = asyncio.Condition()
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
        if scope["path"] == "/endless":
            await self.endless(receive, send)
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
            async with self._counted:
                self._waiting += 1
                self._counted.notify_all()
            await self.release.wait()
        self.headers = scope["headers"]
        await answer(send, 200, str(len(body)).encode())

    async def waits(self, calls: int) -> None:
        """Return once so many calls wait."""
        async with self._counted, asyncio.timeout(10):
            await self._counted.wait_for(lambda: self._waiting >= calls)

    async def endless(self, receive: Any, send: Any) -> None:
        """Answer without end, until the client is gone."""
        gone = asyncio.create_task(self.gone(receive))
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not gone.done():
            await send({"type": "http.response.body", "body": b"x" * 65_536, "more_body": True})
            await asyncio.sleep(0)
        self.cut_off.set()

    async def gone(self, receive: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def lifespan(self, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def answer(send: Any, status: int, body: bytes) -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
