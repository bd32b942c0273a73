"""What proofs are typed with, and how they look at what stands."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.figures import Figures
from tests.postgres import Database

__all__ = ["Figures"]


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Any]:
    """To a proof's database; closed however the proof ends."""
    opened = await database.connect()
    yield opened
    await opened.close()


@pytest.fixture
async def second_connection(database: Database) -> AsyncIterator[Any]:
    """For somebody who looks at the same time."""
    opened = await database.connect()
    yield opened
    await opened.close()
