"""The conformance vectors that the server and every SDK read, and the ledger of those that were run."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "sdk" / "conformance"
FAMILIES = {
    "signatures": 56,
    "accepted decision words": 44,
    "refused decision words": 26,
    "bodies": 46,
    "settings": 9,
    "digests": 16,
    "sealed answers": 8,
    "forms": 78,
    "error answers": 70,
    "callbacks": 39,
}


def load(name: str) -> dict[str, Any]:
    """The content of one vector file."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return content


class Ledger:
    """Counts the cases a runner went through, and holds the runner to all of them."""

    def __init__(self, counts: list[tuple[str, object]]) -> None:
        self._counts = counts

    def settle(self, family: str, mismatches: dict[str, str | None]) -> None:
        """Record one family: `mismatches` has an entry for each case that ran, None where it agreed."""
        self._counts.append((family, len(mismatches)))
        assert {name: text for name, text in mismatches.items() if text is not None} == {}
        assert len(mismatches) == FAMILIES[family]


class Tally:
    """Says at the end of a run how many cases the server went through; `tests/conftest.py` registers it."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        # Other tests count families of the same names: the SDK's.
        if report.when == "teardown" and report.nodeid.startswith("tests/contract/"):
            known = (each for each in report.user_properties if each[0] in FAMILIES)
            self._counts.update({name: int(str(value)) for name, value in known})

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._counts:
            terminalreporter.write_line(_summary(self._counts))


def _summary(counts: dict[str, int]) -> str:
    """One line for the end of a run."""
    words = [counts.get(f"{kind} decision words", 0) for kind in ("accepted", "refused")]
    return (
        f"conformance: {counts.get('signatures', 0)} signatures, {words[0]} + {words[1]} decision words, "
        f"{counts.get('bodies', 0)} bodies, {counts.get('settings', 0)} settings, {counts.get('digests', 0)} digests, "
        f"{counts.get('sealed answers', 0)} sealed answers, {counts.get('forms', 0)} forms, "
        f"{counts.get('error answers', 0)} error answers, {counts.get('callbacks', 0)} callbacks"
    )
