"""Where a runner records its conformance cases, and one real control plane for the SDK's tests."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from holdshort import AsyncClient

from tests import postgres
from tests.contract import planes, vectors


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> vectors.Ledger:
    """Where a runner records its cases; they go with its report, as it may run in another process."""
    return vectors.Ledger(request.node.user_properties)


@pytest.fixture(scope="module")
def plane(postgres_server: postgres.Server, template_database: str) -> Iterator[planes.Plane]:
    """A control plane that all tests share which do not kill it; each uses ids of its own."""
    with postgres.clone(postgres_server, template_database) as database, planes.serving(database) as made:
        yield made


@pytest.fixture
def mortal_plane(database: postgres.Database) -> Iterator[planes.Plane]:
    """A control plane of the test's own, to kill."""
    with planes.serving(database) as made:
        yield made


@pytest.fixture
async def client(plane: planes.Plane) -> AsyncIterator[AsyncClient]:
    """The SDK's client of the shared control plane."""
    async with AsyncClient(plane.url) as made:
        yield made


@pytest.fixture
def fresh() -> Callable[[str], str]:
    """Makes names that no other test uses."""
    suffix = secrets.token_hex(4)
    return lambda word: f"{word}-{suffix}"
