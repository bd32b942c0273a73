"""A program that is told: it keeps every callback it gets, in order, and answers as it is told to."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

Answer = Callable[[dict[str, Any]], Awaitable[bytes | None]]

TAKEN = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{"resolved": true}'


class Receiver:
    """What was received, and where. `answer` gives the reply to a callback; None closes the connection instead."""

    def __init__(self, url: str, answer: Answer) -> None:
        self.url = url
        self.answer = answer
        self.told: list[dict[str, Any]] = []
        self.copies: Counter[str] = Counter()

    def decisions(self, approval_id: str) -> set[str]:
        """Which decisions one approval's agent was told."""
        return {told["decision"] for told in self.told if told["approval_id"] == approval_id}

    def all_decisions(self) -> dict[str, set[str]]:
        """Which decisions were told, of each approval."""
        found: dict[str, set[str]] = {}
        for told in self.told:
            found.setdefault(told["approval_id"], set()).add(told["decision"])
        return found

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        told = json.loads(await reader.readexactly(length))
        self.told.append(told)
        self.copies[head.split("webhook-id:")[1].split("\r\n")[0].strip()] += 1
        reply = await self.answer(told)
        if reply is None:
            return False
        writer.write(reply)
        await writer.drain()
        return True


async def _take(_: dict[str, Any]) -> bytes | None:
    return TAKEN


@asynccontextmanager
async def receiver(answer: Answer = _take) -> AsyncIterator[Receiver]:
    """A receiver on a free loopback port for the length of a block."""
    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(found.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    found = Receiver(f"http://127.0.0.1:{port}/told", answer)
    try:
        yield found
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
