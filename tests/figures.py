"""The figures of proofs, printed at the end of the run; `tests/conftest.py` gives them to every test."""

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Figures = Callable[..., None]
# What tests say goes with their reports, as they may run in other processes than the one that prints it.
_FIGURE = "figure"
_lines: list[str] = []


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Say what a proof saw: a title, and names with their values."""

    def say(title: str, **seen: object) -> None:
        line = f"{title}: " + ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in seen.items())
        request.node.user_properties.append((_FIGURE, line))
        print(line)

    return say


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        _lines.extend(str(value) for name, value in report.user_properties if name == _FIGURE)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _lines:
        terminalreporter.section("figures of the proofs")
        terminalreporter.line(f"commit {_commit()}, {os.cpu_count()} processors, Python {platform.python_version()}")
        for line in _lines:
            terminalreporter.line(line)


def _commit() -> str:
    root = Path(__file__).parents[1]
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, check=False)
    return found.stdout.decode().strip() or "unknown"
