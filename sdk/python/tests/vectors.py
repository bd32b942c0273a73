"""The conformance vectors as the tests of the Python SDK run them, and the ledger of those that ran."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "conformance"
LOG = "HOLDSHORT_VECTORS_LOG"
FAMILIES = {
    "signatures": 56,
    "decisions": 70,
    "webhook_bodies": 46,
    "secret_settings": 9,
    "payload_digests": 16,
    "feedback_sealing": 8,
    "errors": 90,
    "retries": 52,
    "callbacks": 49,
    "forms": 78,
}


def load(name: str) -> dict[str, Any]:
    """The content of one vector file."""
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return content


class Ledger:
    """Counts the cases that a test went through, and holds it to all of them."""

    def __init__(self, counts: list[tuple[str, object]]) -> None:
        self._counts = counts

    def settle(self, family: str, found: Mapping[str, tuple[object, object]]) -> None:
        """Compare one family, of which each case has what was found and what is expected; record it when all agree."""
        # As JSON, in which 0 is not false.
        texts = {name: tuple(json.dumps(each, sort_keys=True) for each in pair) for name, pair in found.items()}
        assert {name: f"{got} instead of {wanted}" for name, (got, wanted) in texts.items() if got != wanted} == {}
        assert len(found) == FAMILIES[family]
        self._counts.append((family, len(found)))


def report(counts: Mapping[str, int]) -> list[str]:
    """A line for each family that agreed in all its cases, for whoever sums up the languages, and one for people."""
    lines = [_line(family, counts[family]) for family in sorted(counts)]
    if log := os.environ.get(LOG):
        with Path(log).open("a", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in lines)
    told = ", ".join(f"{counts[family]} {family}" for family in sorted(counts))
    return [*(f"holdshort-vectors: {line}" for line in lines), f"conformance of the Python SDK: {told}"]


def _line(family: str, ran: int) -> str:
    return json.dumps({"language": "python", "family": family, "ran": ran}, separators=(",", ":"))
