"""LISTEN and NOTIFY: a hint that something was committed, never the truth and never inside a decision."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import sqlalchemy as sa

from controlplane.storage.engine import Connection, connect

CHANNEL = "holdshort"
PING_SECONDS = 5.0
_DEADLINE_SECONDS = 5.0


async def notify(conn: Connection) -> None:
    """Tell every listening process to look; the message says nothing."""
    await conn.run(sa.text(f"SELECT pg_notify('{CHANNEL}', '')"))


class Listener:
    """A connection of its own that hears of changes."""

    def __init__(self, connection: Any) -> None:
        """Made by `listen`."""
        self._connection = connection

    async def ping(self) -> None:
        """Make sure that the connection still answers.

        Raises:
            TimeoutError, OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError: it does
                not.
        """
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await self._connection.execute("SELECT 1")


LISTENER_FAULTS = (
    TimeoutError,
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)


@asynccontextmanager
async def listen(url: str, heard: Callable[[], None]) -> AsyncIterator[Listener]:
    """Listen for changes on a direct connection for the length of a block.

    Args:
        url: the database; past any transaction pooler.
        heard: called for every notification.
    """
    connection = await connect(url, timeout=_DEADLINE_SECONDS)
    try:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            await connection.add_listener(CHANNEL, lambda *_: heard())
        yield Listener(connection)
    finally:
        connection.terminate()
