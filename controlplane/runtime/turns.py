"""Taking turns: looks into the database that may not crowd out others wait for each other, and not for ever."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controlplane.domain.errors import DatabaseUnavailable

# Behind a database that swallows everything each look takes its whole deadline: a queue of them needs one of its own.
TURN_SECONDS = 15.0


@asynccontextmanager
async def turn(line: asyncio.Semaphore) -> AsyncIterator[None]:
    """Have one's turn for the length of a block.

    Raises:
        DatabaseUnavailable: those before took 15 s.
    """
    try:
        async with asyncio.timeout(TURN_SECONDS):
            await line.acquire()
    except TimeoutError:
        raise DatabaseUnavailable from None
    try:
        yield
    finally:
        line.release()
