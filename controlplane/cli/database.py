"""The database itself, for commands that need no running server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeVar

from controlplane.cli.faults import WrongUsage
from controlplane.domain.events import Actor, ActorKind
from controlplane.settings import Settings
from controlplane.storage.engine import Connection, make_engine, transaction

Done = TypeVar("Done")
# Whoever may use the database itself.
OPERATOR = Actor(ActorKind.PERSON, "operator", "cli")
Open = Callable[[], AbstractAsyncContextManager[Connection]]


def url_of(settings: Settings) -> str:
    """Where the database is.

    Raises:
        WrongUsage: nobody said so.
    """
    if settings.database_url is None:
        raise WrongUsage("set HOLDSHORT_DATABASE_URL to the database that the servers use")
    return settings.database_url


def owner_url_of(settings: Settings) -> str:
    """Where the database is, for what only the owner of its tables may do.

    Raises:
        WrongUsage: nobody said so.
    """
    return settings.migration_database_url or url_of(settings)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Open]:
    """What opens one transaction after another on a database."""
    engine = make_engine(url, pool_size=1)
    try:
        yield partial(transaction, engine)
    finally:
        await engine.dispose()


def run(settings: Settings, work: Callable[[Connection], Awaitable[Done]]) -> Done:
    """Do something in one transaction on the database.

    Raises:
        WrongUsage: nobody said where the database is.
    """
    url = url_of(settings)

    async def once() -> Done:
        async with opened(url) as open_, open_() as conn:
            return await work(conn)

    return asyncio.run(once())
