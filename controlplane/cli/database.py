"""The database itself, for commands that need no running server."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from controlplane.cli.faults import WrongUsage
from controlplane.settings import Settings
from controlplane.storage.engine import Connection, make_engine, transaction

Open = Callable[[], AbstractAsyncContextManager[Connection]]


def url_of(settings: Settings) -> str:
    """Where the database is.

    Raises:
        WrongUsage: nobody said so.
    """
    if settings.database_url is None:
        raise WrongUsage("set HOLDSHORT_DATABASE_URL to the database that the servers use")
    return settings.database_url


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Open]:
    """What opens one transaction after another on a database."""
    engine = make_engine(url, pool_size=1)
    try:
        yield partial(transaction, engine)
    finally:
        await engine.dispose()
