"""The figures of proofs, printed at the end of the run; `tests/conftest.py` gives them to every test."""

import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

_FIGURES = pytest.StashKey[list[str]]()
Figures = Callable[..., None]


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Say what a proof saw: a title, and names with their values."""
    lines = request.config.stash.setdefault(_FIGURES, [])

    def say(title: str, **seen: object) -> None:
        line = f"{title}: " + ", ".join(f"{name.replace('_', ' ')} {_shown(value)}" for name, value in seen.items())
        lines.append(line)
        print(line)

    return say


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(_FIGURES, [])
    if lines:
        terminalreporter.section("figures of the proofs")
        terminalreporter.line(f"commit {_commit()}, {os.cpu_count()} processors, Python {platform.python_version()}")
        for line in lines:
            terminalreporter.line(line)


def _commit() -> str:
    root = Path(__file__).parents[1]
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, check=False)
    return found.stdout.decode().strip() or "unknown"
