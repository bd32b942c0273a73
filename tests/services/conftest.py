"""What service tests share: a store, and a second connection to look and to hold locks with."""

from collections.abc import AsyncIterator

import pytest

from tests.postgres import Database
from tests.services.store import Rows, Store


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    """The services on this test's own database."""
    made = Store(database)
    yield made
    await made.engine.dispose()


@pytest.fixture
async def rows(database: Database) -> AsyncIterator[Rows]:
    """A connection of the test's own."""
    connection = await database.connect()
    yield Rows(connection)
    await connection.close()
