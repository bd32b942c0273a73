"""What HTTP tests share: an application without workers, called without a socket, and a look into its database."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.app import Api, in_process
from tests.postgres import Database


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """One application; what it does is done when a call returns."""
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def sql(database: Database) -> AsyncIterator[Any]:
    """A connection of the test's own."""
    connection = await database.connect()
    yield connection
    await connection.close()
