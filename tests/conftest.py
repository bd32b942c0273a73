"""What every test has: a sealed environment, and a PostgreSQL of its own when it asks for `database`."""

import os
from collections.abc import Iterator

import pytest

from tests import postgres
from tests.contract.vectors import Tally
from tests.figures import figures, pytest_runtest_logreport, pytest_terminal_summary
from tests.languages.table import Table

__all__ = ["figures", "pytest_runtest_logreport", "pytest_terminal_summary"]

_ENVIRON = pytest.StashKey[dict[str, str]]()
_SOURCE = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    # Not by conftest files of their folders: the process that prints loads none of them when others run the tests.
    config.pluginmanager.register(Table(), "languages")
    config.pluginmanager.register(Tally(), "conformance")
    config.stash[_ENVIRON] = dict(os.environ)
    config.stash[_SOURCE] = postgres.choose(config.stash[_ENVIRON])
    for name in list(os.environ):
        if name.startswith("HOLDSHORT_") or name.lower().endswith("_proxy"):
            del os.environ[name]


def pytest_report_header(config: pytest.Config) -> str:
    return f"postgresql: {config.stash[_SOURCE]}"


@pytest.fixture(scope="session")
def given_environ(request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment as it was before it was sealed, for what has to be installed."""
    return request.config.stash[_ENVIRON]


@pytest.fixture(scope="session")
def postgres_server(request: pytest.FixtureRequest) -> Iterator[postgres.Server]:
    """The PostgreSQL of this run."""
    stash = request.config.stash
    with postgres.serve(stash[_SOURCE], stash[_ENVIRON]) as server:
        yield server


@pytest.fixture(scope="session")
def template_database(postgres_server: postgres.Server) -> Iterator[str]:
    """The name of the migrated database that tests' own ones are cloned from."""
    with postgres.template(postgres_server) as name:
        yield name


@pytest.fixture
def database(postgres_server: postgres.Server, template_database: str) -> Iterator[postgres.Database]:
    """A migrated, empty database for one test."""
    with postgres.clone(postgres_server, template_database) as clone:
        yield clone
