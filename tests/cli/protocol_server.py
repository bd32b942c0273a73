"""An application behind the serving process's protocol, for the tests that talk to it byte by byte."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
import uvloop

from controlplane.cli.serving.connections import DEFAULT_LIMIT
from controlplane.cli.serving.listening import listen
from controlplane.cli.serving.server import config_of
from tests.cli.slow_app import SlowApp

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\n"
CLOSE = b"Connection: close\r\n"
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Served:
    """Where an application is served, and the loop that it is served on."""

    def __init__(self, port: int, app: SlowApp, loop: asyncio.AbstractEventLoop) -> None:
        self.port = port
        self.app = app
        self._loop = loop

    async def talk(self, *pieces: bytes) -> bytes:
        """Send the pieces, then read until the server closes."""
        async with self.open() as (reader, writer), asyncio.timeout(10):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection, closed at the end of the block, whatever the server did to it before."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def until(self, there: Coroutine[Any, Any, Any]) -> None:
        """Wait for something of the application, on the loop that it runs on."""
        async with asyncio.timeout(10):
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there, self._loop))

    def release(self) -> None:
        """Let the calls that wait be answered."""
        self._loop.call_soon_threadsafe(self.app.release.set)


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    """A small application, served on the test's own loop until the end of the block."""
    app, server, sock = _prepared(DEFAULT_LIMIT, 65)
    task = asyncio.create_task(server._serve([sock]))
    try:
        yield Served(sock.getsockname()[1], app, asyncio.get_running_loop())
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def serving_apart(*, connections: int = DEFAULT_LIMIT, keep_alive: float = 65) -> AsyncIterator[Served]:
    """The same in a thread of its own, on the kind of loop that servers run on."""
    app, server, sock = _prepared(connections, keep_alive)
    begun: asyncio.Queue[asyncio.AbstractEventLoop] = asyncio.Queue()
    here = asyncio.get_running_loop()

    async def serve() -> None:
        here.call_soon_threadsafe(begun.put_nowait, asyncio.get_running_loop())
        await server._serve([sock])

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve())

    running = asyncio.create_task(asyncio.to_thread(run))
    served = Served(sock.getsockname()[1], app, await begun.get())
    try:
        yield served
    finally:
        served.release()
        server.should_exit = True
        await running


def _prepared(connections: int, keep_alive: float) -> tuple[SlowApp, uvicorn.Server, socket.socket]:
    app = SlowApp()
    config = config_of(app, connections=connections)
    config.timeout_graceful_shutdown = 1
    config.timeout_keep_alive = keep_alive  # type: ignore[assignment]
    return app, uvicorn.Server(config), listen("127.0.0.1", 0)


def problem(reply: bytes) -> tuple[int, str]:
    """The status and code of a reply that must be a whole problem document."""
    head, _, body = reply.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    document = json.loads(body)
    assert {"type", "title", "status", "detail", "error", "message"} <= document.keys()
    assert int(head.split()[1]) == document["status"]
    return document["status"], document["error"]


def statuses(replies: bytes) -> list[int]:
    """The status of each reply of a connection."""
    return [int(status) for status in _STATUS.findall(replies)]
