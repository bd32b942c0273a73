"""Prints how many conformance cases a run went through, and serves one real control plane to the SDK's tests."""

import secrets
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from holdshort import AsyncClient

from tests import postgres
from tests.contract import planes, vectors

_counts: dict[str, int] = {}


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> vectors.Ledger:
    """Where a runner records its cases; they go with its report, as it may run in another process."""
    return vectors.Ledger(request.node.user_properties)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _counts.update({name: int(str(value)) for name, value in report.user_properties if name in vectors.FAMILIES})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _counts:
        terminalreporter.write_line(vectors.summary(_counts))


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
