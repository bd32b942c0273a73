"""What the languages' tests saw, as a table at the end of a run; the plugin of `tests/conftest.py` that prints it."""

import os
import secrets
import shutil
from collections import Counter
from typing import Any

import pytest

from tests.languages import covered, sdks
from tests.languages.sdks import SDKS

VECTORS, SCENARIO = "vectors of a language", "scenario of a language"
# Set once for a run, before its workers are started, which inherit it.
_SESSION = "TESTS_LANGUAGES_SESSION"


def session() -> str:
    """The name of this run, the same in all of its processes."""
    return os.environ[_SESSION]


class Table:
    """Gathers what tests say of languages, and prints it when all are done."""

    def __init__(self) -> None:
        self._vectors: Counter[str] = Counter()
        self._scenarios: Counter[str] = Counter()
        self._mine = _SESSION not in os.environ
        os.environ.setdefault(_SESSION, f"run-{secrets.token_hex(4)}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        for name, value in report.user_properties:
            if name == VECTORS:
                language, ran = str(value).split()
                self._vectors[language] += int(ran)
            elif name == SCENARIO:
                self._scenarios[str(value)] += 1

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        # Workers come here too, and print nowhere.
        if self._mine and (self._vectors or self._scenarios):
            terminalreporter.section("languages")
            terminalreporter.line(f"{'':<12}{'vectors':>8}{'live scenarios':>16}{'lines run':>22}")
            for name in SDKS:
                terminalreporter.line(self._row(name))

    def pytest_unconfigure(self) -> None:
        if self._mine:
            shutil.rmtree(sdks.CACHE / session(), ignore_errors=True)
            del os.environ[_SESSION]

    def _row(self, name: str) -> str:
        if not (self._vectors[name] or self._scenarios[name]):
            return f"{name:<12}{sdks.missing(SDKS[name]) or 'not run'}"
        return f"{name:<12}{self._vectors[name]:>8}{self._scenarios[name]:>16}{self._lines(name):>22}"

    @staticmethod
    def _lines(name: str) -> str:
        try:
            return str(covered.lines_of(name, session()))
        except (AssertionError, OSError, ValueError) as error:
            return f"not known: {str(error).strip().splitlines()[-1:]}"


def said(node: Any, name: str, value: str) -> None:
    """Let a test's report carry something for the table."""
    node.user_properties.append((name, value))
