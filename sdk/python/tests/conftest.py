"""A sealed environment, and an agent on the testing control plane."""

import os
from collections.abc import Callable

import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane

from sdk.python.tests.support import Wire

_VECTORS = "vectors in Python"
_ran: list[str] = []


@pytest.fixture
def ran(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Says how many conformance vectors a test went through; it goes with its report, which another process prints."""
    return lambda told: request.node.user_properties.append((_VECTORS, told))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _ran.extend(str(told) for name, told in report.user_properties if name == _VECTORS)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _ran:
        terminalreporter.write_line(f"conformance of the Python SDK: {', '.join(sorted(_ran))}")


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
