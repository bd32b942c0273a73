"""What service tests share: a store, and connections beside it to look and to hold locks with."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests import owner, postgres
from tests.postgres import Database, Server
from tests.services.agents import Agents
from tests.services.fleet import Fleet
from tests.services.store import Rows, Store


@pytest.fixture(scope="session")
def services_database(postgres_server: Server, template_database: str) -> Iterator[Database]:
    """One database for all service tests: they change rows only, and emptying it is much cheaper than a clone."""
    with postgres.clone(postgres_server, template_database) as clone:
        yield clone


@pytest.fixture
async def database(services_database: Database) -> AsyncIterator[Database]:
    """The shared database, empty."""
    yield services_database
    connection = await services_database.connect()
    await connection.execute(owner.EMPTY)
    await connection.close()


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """The services on this test's database."""
    made = Store(database)
    yield made
    await made.engine.dispose()


@pytest.fixture
async def rows(database: Database) -> AsyncIterator[Rows]:
    """A connection of the test's own."""
    connection = await database.connect()
    yield Rows(connection)
    await connection.close()


@pytest.fixture
async def watcher(database: Database) -> AsyncIterator[Rows]:
    """A further one, to see who waits: inside a transaction that picture stands still."""
    connection = await database.connect()
    yield Rows(connection)
    await connection.close()


@pytest.fixture
def fleet(store: Store, rows: Rows) -> Fleet:
    """The node's instances and its queue."""
    return Fleet(store, rows)


@pytest.fixture
def agents(store: Store, rows: Rows) -> Agents:
    """Processes that come and go."""
    return Agents(store, rows)
