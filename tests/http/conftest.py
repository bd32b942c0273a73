"""What HTTP tests share: an application without workers, called without a socket, and a look into its database."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.app import Api, in_process
from tests.postgres import Database, Server, clone


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_api(postgres_server: Server, template_database: str) -> AsyncIterator[Api]:
    """One application for a whole file of tests that have no effect."""
    with clone(postgres_server, template_database) as database:
        async with in_process(database) as made:
            yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_approval(shared_api: Api) -> str:
    """A pending approval in it."""
    return await shared_api.asked()
