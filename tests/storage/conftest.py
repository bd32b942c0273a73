"""What storage tests share."""

import subprocess
from collections.abc import AsyncIterator, Callable

import pytest

from controlplane.cli.postgres.binaries import Binaries
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


@pytest.fixture
def pg_dump() -> Callable[[str], str]:
    """Dump a database's schema with the embedded PostgreSQL's own pg_dump, without the random \\restrict lines."""
    program = Binaries.locate().program("pg_dump")

    def dump(url: str) -> str:
        done = subprocess.run(
            [program, "--schema-only", "--no-owner", "--exclude-table=alembic_version", "--dbname", url],
            check=True,
            capture_output=True,
            text=True,
        )
        return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("\\"))

    return dump
