"""What callback tests share: a receiver, an application that tells it, and a look into the database."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.app import Api, in_process
from tests.postgres import Database
from tests.receiver import Receiver, receiver


@pytest.fixture
async def told() -> AsyncIterator[Receiver]:
    """Where callbacks go."""
    async with receiver() as made:
        yield made


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application with its workers."""
    async with in_process(database, workers=True) as made:
        yield made


@pytest.fixture
async def still(database: Database) -> AsyncIterator[Api]:
    """An application whose workers a test runs step by step."""
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def sql(database: Database) -> AsyncIterator[Any]:
    """A connection of the test's own."""
    connection = await database.connect()
    yield connection
    await connection.close()
