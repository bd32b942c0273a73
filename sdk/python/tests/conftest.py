"""A sealed environment, and an agent on the testing control plane."""

import os

import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane

from sdk.python.tests.support import Wire


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
