"""What tests of pages share: an application that needs a key, keys of each scope, and a look into its database."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from tests.app import Api, in_process
from tests.inbox.person import Person, signed_in
from tests.keys import Keys, keep_keys
from tests.postgres import Database, Server, clone


class Shared(NamedTuple):
    """An application, and a connection to its database."""

    api: Api
    sql: Any


@pytest.fixture
async def keys(database: Database) -> Keys:
    """A key of each scope, as it was shown once."""
    return await keep_keys(database)


@pytest.fixture
async def guarded(database: Database, keys: Keys) -> AsyncIterator[Api]:
    """An application that nobody uses without a key."""
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def ann(guarded: Api, keys: Keys) -> Person:
    """A reviewer who is signed in."""
    return await signed_in(guarded, keys.review)


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application that stands open, as no key exists."""
    async with in_process(database) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(postgres_server: Server, template_database: str) -> AsyncIterator[Shared]:
    """An open application for a whole file of tests that each ask anew, and a look into its database."""
    with clone(postgres_server, template_database) as database:
        async with in_process(database) as made:
            connection = await database.connect()
            yield Shared(made, connection)
            await connection.close()


@pytest.fixture
async def sql(database: Database) -> AsyncIterator[Any]:
    """A connection of the test's own."""
    connection = await database.connect()
    yield connection
    await connection.close()
