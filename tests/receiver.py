"""A real HTTP server that callbacks are sent to: it keeps what came, and answers as it is told to."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.app import until

Answer = Callable[["Got", asyncio.StreamWriter], Awaitable[None]]


class Got(NamedTuple):
    """One callback as it arrived."""

    path: str
    headers: dict[str, str]
    raw: bytes
    at: float

    @property
    def body(self) -> dict[str, Any]:
        """Its JSON."""
        return dict(json.loads(self.raw))


class Receiver:
    """Answers each callback with the next of `answers`, the last of them for ever; 200 when there is none."""

    def __init__(self) -> None:
        self.got: list[Got] = []
        self.answers: list[Answer] = []
        self.open = 0
        self.most_open = 0
        self.port = 0

    @property
    def url(self) -> str:
        """An address of this server."""
        return f"http://127.0.0.1:{self.port}/webhooks/approval"

    async def wait_for(self, count: int, *, seconds: float = 10) -> list[Got]:
        """Everything that came, once it is at least `count`."""
        await until(lambda: len(self.got) >= count, seconds=seconds)
        return self.got

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        got = Got(head[0].split()[1], headers, raw, asyncio.get_running_loop().time())
        answer = self.answers.pop(0) if len(self.answers) > 1 else (self.answers or [reply(200)])[0]
        self.got.append(got)
        await answer(got, writer)
        await writer.drain()
        return not writer.is_closing()


def reply(status: int, body: bytes = b"{}", *headers: str) -> Answer:
    """An ordinary answer."""

    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)

    return answer


def hang(released: asyncio.Event, then: Answer | None = None) -> Answer:
    """Say nothing until released, then answer 200 or as given."""

    async def answer(got: Got, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        await (then or reply(200))(got, writer)

    return answer


def drip(stopped: asyncio.Event) -> Answer:
    """Answer 200 and then send one byte of the body at a time, without end."""

    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not stopped.is_set():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)

    return answer


@asynccontextmanager
async def receiver() -> AsyncIterator[Receiver]:
    """A receiver that listens for the length of a block."""
    made = Receiver()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(made.serve(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
