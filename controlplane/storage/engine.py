"""The engine, one transaction at a time, and what a transaction tells its process once it is committed."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import asyncpg
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql.base import Executable

from controlplane.domain.access import EVERYTHING, Reach
from controlplane.domain.errors import DatabaseUnavailable, HoldshortError
from controlplane.storage.statement import Statement, to_row

DRIVER = "postgresql+asyncpg://"

# Classes of SQLSTATE that mean "not now" rather than "never": the connection or the right to it, resources, operator
# intervention, a lock that was not to be had, a statement or a transaction over its time, a server that may not be
# written (a standby, until it is promoted), a deadlock or a serialisation fault.
_PASSING = ("08", "28", "3D", "53", "57", "55P03", "25P03", "25006", "40")

# One message to the server. The limits end with the transaction, so they reach through a pooler and stay with us.
_BEGIN = (
    "BEGIN; SET LOCAL statement_timeout = '5s'; SET LOCAL lock_timeout = '1s';"
    " SET LOCAL idle_in_transaction_session_timeout = '5s'"
)


class DatabaseUrlWrong(HoldshortError):
    """The database's URL cannot be used; correct it."""

    code = "database_url_wrong"


class Changes:
    """What a transaction did that others in the process wait for; told after commit, never before."""

    __slots__ = ("closed", "due", "ended", "settled", "work", "wrote")

    def __init__(self) -> None:
        """Nothing changed yet: approvals that are final, executions and questions that ended, deliveries due, work."""
        self.settled: list[str] = []
        self.ended: list[str] = []
        self.closed: list[str] = []
        self.due = False
        self.work = False
        self.wrote = False


class Connection:
    """One open transaction. Services are given one and never open or commit it themselves.

    `reach` is what its caller may see: what lies beyond is not found, by any function of this room.
    """

    __slots__ = ("_driver", "_sql", "changes", "kept", "reach")

    def __init__(self, sql: AsyncConnection, driver: Any = None, reach: Reach = EVERYTHING) -> None:
        """Wrap an open transaction: SQLAlchemy's connection and the driver's below it."""
        self._sql = sql
        self._driver = driver
        self.changes = Changes()
        self.kept = False
        self.reach = reach

    def keep(self) -> None:
        """Commit what was written so far also when a refusal (a `HoldshortError`) ends the transaction.

        For a deadline that a request met: it has passed whatever else the request is told. The caller raises
        no refusal after writing anything else.
        """
        self.kept = True

    async def rows(self, statement: Statement | Executable, values: Mapping[str, Any] | None = None) -> Sequence[Any]:
        """Run a statement and return all its rows, each with its columns as attributes."""
        if isinstance(statement, Statement):
            found = await self._driver.fetch(statement.text, *statement.arguments(values or {}))
            return [to_row(record) for record in found]
        return (await self._sql.execute(statement, values)).all()

    async def row(self, statement: Statement | Executable, values: Mapping[str, Any] | None = None) -> Any | None:
        """Run a statement and return its only row, or None."""
        rows = await self.rows(statement, values)
        if len(rows) > 1:
            raise RuntimeError(f"one row was expected, {len(rows)} came")
        return rows[0] if rows else None

    async def run(self, statement: Statement | Executable, values: Mapping[str, Any] | None = None) -> int:
        """Run a statement and return how many rows it touched."""
        if isinstance(statement, Statement):
            done: str = await self._driver.execute(statement.text, *statement.arguments(values or {}))
            return int(done.rpartition(" ")[2])
        return (await self._sql.execute(statement, values)).rowcount


async def connect(url: str, *, timeout: float, command_timeout: float | None = None) -> Any:
    """A connection of the driver's own, not in any pool.

    The driver reads the URL, as SQLAlchemy would not know what providers put behind its `?` (sslmode, sslrootcert).

    Args:
        url: `postgresql://...`, any spelling, with the parameters that libpq takes.
        timeout: seconds to connect in.
        command_timeout: seconds for each statement; None sets no limit.

    Raises:
        DatabaseUrlWrong: the URL has a part that means nothing.
        OSError, asyncpg.PostgresError: the server is not there, or does not let us in.
    """
    try:
        dsn = sa.make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        return await asyncpg.connect(dsn, timeout=timeout, command_timeout=command_timeout)
    except OSError:
        raise  # a certificate that does not hold is a ValueError too
    except (sa.exc.ArgumentError, ValueError) as fault:
        raise DatabaseUrlWrong(f"The database's URL cannot be used ({fault}); correct it.") from None


def make_engine(url: str, pool_size: int) -> AsyncEngine:
    """An engine with a fixed pool: at most `pool_size` connections, each call with a deadline of its own.

    Args:
        url: as `connect`.
        pool_size: connections at most; a caller waits 5 s for one and is then told that the database is away.
    """
    engine = create_async_engine(
        DRIVER,
        async_creator=partial(connect, url, timeout=5, command_timeout=10),
        # Transactions are begun and ended by `transaction`, through the driver.
        isolation_level="AUTOCOMMIT",
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        # A statement's values are callers' bodies and secrets; an error that is logged must not carry them.
        hide_parameters=True,
    )
    sa.event.listen(engine.sync_engine, "checkout", _replace_if_closed)
    return engine


def _replace_if_closed(connection: Any, *_: object) -> None:
    """Have the pool make a new connection for one that the server has closed meanwhile."""
    if connection.driver_connection.is_closed():
        raise sa.exc.DisconnectionError


@asynccontextmanager
async def transaction(
    engine: AsyncEngine, after_commit: Callable[[Changes], None] = lambda _: None, reach: Reach = EVERYTHING
) -> AsyncIterator[Connection]:
    """Open a transaction, commit it at the end, then tell `after_commit` what changed.

    Opened only at the edges (http, workers, cli). An exception rolls everything back, save what was kept
    (`Connection.keep`).

    Raises:
        DatabaseUnavailable: the database is away, busy or out of time; nothing was committed, or its commit
            was cut off and may stand (asking again is safe everywhere).
    """
    with unavailable():
        async with _begun(engine, reach) as connection:
            with _Refusal(connection) as refusal:
                yield connection
    after_commit(connection.changes)
    if refusal.error is not None:
        raise refusal.error


@asynccontextmanager
async def _begun(engine: AsyncEngine, reach: Reach) -> AsyncIterator[Connection]:
    """A transaction that is committed at the end; whatever goes wrong, it is not, and its connection is clean."""
    async with engine.connect() as sql:
        driver: Any = (await sql.get_raw_connection()).driver_connection
        try:
            await driver.execute(_BEGIN)
            yield Connection(sql, driver, reach)
            ended = await driver.execute("COMMIT")
        except Exception:
            await _roll_back(driver)
            raise
        except BaseException:
            driver.terminate()  # cancelled: perhaps in the middle of a statement, so nobody uses it again
            raise
        if ended != "COMMIT":
            raise RuntimeError("a statement had failed, so the transaction was rolled back instead of committed")


async def _roll_back(driver: Any) -> None:
    try:
        await driver.execute("ROLLBACK")
    except Exception:
        driver.terminate()
    except BaseException:
        driver.terminate()  # cancelled: perhaps before it was sent
        raise


class _Refusal:
    """Holds back a refusal until what was kept before it is committed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.error: HoldshortError | None = None

    def __enter__(self) -> "_Refusal":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, HoldshortError) and self._connection.kept:
            self.error = error
        return self.error is not None


class unavailable:  # noqa: N801
    """Turn every sign of an absent or exhausted database into `DatabaseUnavailable`."""

    def __enter__(self) -> None:
        """Nothing to set up."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Translate what means "not now"; leave every other exception as it is."""
        if error is not None and is_passing(error):
            raise DatabaseUnavailable from error


def is_passing(error: BaseException) -> bool:
    """True when an exception means that the database is away or busy, not that a statement is wrong."""
    # The driver calls it an internal error when the connection was ended and it has read but half of that.
    if isinstance(error, PoolTimeout | OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return True
    if isinstance(error, asyncpg.PostgresError):
        return str(error.sqlstate or "").startswith(_PASSING)
    if not isinstance(error, DBAPIError):
        return False
    state = str(getattr(error.orig, "sqlstate", None) or "")
    return error.connection_invalidated or state.startswith(_PASSING)
