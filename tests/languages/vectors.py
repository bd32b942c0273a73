"""How many cases of each family of vectors an SDK has to run, and how many it says that it ran."""

import json
import re
from pathlib import Path
from typing import Any

from tests.languages.toolchains import ROOT

FOLDER = ROOT / "sdk" / "conformance"
_SAID = re.compile(r"holdshort-vectors: (\{.*?\})")


def expected(language: str) -> dict[str, int]:
    """The cases that an SDK runs, by family: a JSON Schema is checked by the server, and here by Python alone."""
    schemas = language == "python"
    decisions, seals = _read("decisions"), _read("feedback_sealing")
    cases = {name: len(_read(name)["cases"]) for name in _of_cases()}
    forms = [each for each in _read("forms")["cases"] if schemas or not _has_schema(each["form"])]
    return {
        **cases,
        "forms": len(forms),
        "decisions": len(decisions["accepted"]) + len(decisions["refused"]),
        "feedback_sealing": len(seals["opens"]) + len(seals["refused"]),
    }


def ran(output: str) -> dict[str, dict[str, int]]:
    """What the tests said that they ran, by language and family."""
    found: dict[str, dict[str, int]] = {}
    for line in _SAID.finditer(output):
        said = json.loads(line[1])
        families = found.setdefault(said["language"], {})
        families[said["family"]] = families.get(said["family"], 0) + said["ran"]
    return found


def _of_cases() -> list[str]:
    others = {"decisions", "feedback_sealing", "forms", "scenarios"}
    return sorted(path.stem for path in Path(FOLDER).glob("*.json") if path.stem not in others)


def _has_schema(form: Any) -> bool:
    return isinstance(form, dict) and "schema" in form


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    return content
