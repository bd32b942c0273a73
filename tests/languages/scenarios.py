"""The scenarios of sdk/conformance/scenarios.json, and in which modes each is played."""

import json
from typing import Any, NamedTuple

from tests.languages.toolchains import ROOT

FILE = ROOT / "sdk" / "conformance" / "scenarios.json"
MODES = ("push", "pull", "auto")
USUAL_MODE = "auto"


class Scenario(NamedTuple):
    """One scenario in one callback mode.

    `modes` are those of its agents, its own first; `own` says that it may kill its agent; `skips` says which languages
    leave it out, and why.
    """

    name: str
    mode: str
    modes: tuple[str, ...]
    own: bool
    skips: dict[str, str]
    steps: list[dict[str, Any]]

    @property
    def shown(self) -> str:
        """Its name in a test's id."""
        return f"{self.name}, {self.mode}"


def load() -> list[Scenario]:
    """All of them, in the order of the file."""
    written = json.loads(FILE.read_text("utf-8"))["scenarios"]
    return [_played(each, mode) for each in written for mode in each.get("callbacks", [USUAL_MODE])]


def _played(each: dict[str, Any], mode: str) -> Scenario:
    others = [other for other in each.get("agents", []) if other != mode]
    own = each.get("agent") == "own"
    return Scenario(each["name"], mode, (mode, *others), own, each.get("skips", {}), each["steps"])
