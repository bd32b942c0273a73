"""A sealed environment, and an agent on the testing control plane."""

import os

import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane

from sdk.python.tests import vectors
from sdk.python.tests.support import Wire

_counts: dict[str, int] = {}


@pytest.fixture
def ledger(request: pytest.FixtureRequest) -> vectors.Ledger:
    """Where a test records its cases; they go with its report, which another process prints."""
    return vectors.Ledger(request.node.user_properties)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        found = {name: value for name, value in report.user_properties if name in vectors.FAMILIES}
        _counts.update({name: int(str(value)) for name, value in found.items()})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # A process that runs a part of the tests for another one has nobody to tell, and the other one tells it all.
    if _counts and not hasattr(terminalreporter.config, "workerinput"):
        for line in vectors.report(_counts):
            terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("HOLDSHORT_") or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def plane() -> ControlPlane:
    return ControlPlane()


@pytest.fixture
def agent(plane: ControlPlane) -> Agent:
    return plane.connect(Agent("contract-reviewer", "1.0.0"))


@pytest.fixture
def wire(plane: ControlPlane) -> Wire:
    return Wire(plane)
