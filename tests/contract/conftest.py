"""Prints how many conformance cases a run went through."""

import pytest

from tests.contract import vectors


@pytest.fixture
def ledger(pytestconfig: pytest.Config) -> vectors.Ledger:
    """Where a runner records its cases."""
    return vectors.Ledger(pytestconfig.stash.setdefault(vectors.LEDGER, {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(vectors.LEDGER, {})
    if counts:
        terminalreporter.write_line(vectors.summary(counts))
