"""The SDKs that can be run here, and one control plane for the scenarios of a file."""

from collections.abc import Iterator

import pytest

from tests import postgres
from tests.languages import planes, sdks, table
from tests.languages.sdks import SDKS, Missing, Sdk, Usable


@pytest.fixture(scope="session")
def session() -> str:
    """The name of this run."""
    return table.session()


@pytest.fixture(scope="session")
def missing_tool(given_environ: dict[str, str]) -> Missing:
    """Skips a test for want of a tool; in CI, where everything has to be there, it fails."""
    return pytest.fail if given_environ.get("CI") == "true" else pytest.skip


@pytest.fixture(scope="session")
def usable(session: str, missing_tool: Missing) -> Usable:
    """Gives the SDK of a language, built; where its tools are missing the test is skipped, or fails in CI."""

    def built(name: str) -> Sdk:
        sdk = SDKS[name]
        why = sdks.missing(sdk)
        if why is not None:
            missing_tool(f"{name}: {why}")
        with sdks.building(sdk):
            stamp = sdks.data_of(sdk, session).with_suffix(".built")
            if not stamp.exists():
                sdk.build()
                stamp.touch()
        return sdk

    return built


@pytest.fixture(scope="module", params=list(SDKS))
def sdk(request: pytest.FixtureRequest, usable: Usable) -> Sdk:
    """Each of the SDKs."""
    return usable(request.param)


@pytest.fixture(scope="module")
def plane(postgres_server: postgres.Server, template_database: str) -> Iterator[planes.Plane]:
    """A control plane that wants keys."""
    with postgres.clone(postgres_server, template_database) as database, planes.serving(database) as made:
        yield made
