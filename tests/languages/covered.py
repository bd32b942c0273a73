"""How many lines of each SDK were run by its tests of the vectors and by the scenarios."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.languages import sdks
from tests.languages.sdks import SDKS, Sdk

# package/file.go:first.column,last.column statements count
_BLOCK = re.compile(r"^(.+):(\d+)\.\d+,(\d+)\.\d+ \d+ (\d+)$")


class Lines(NamedTuple):
    """Lines of an SDK that can be run, and those of them that were."""

    run: int
    all: int

    def __str__(self) -> str:
        return f"{self.run} of {self.all} ({100 * self.run / max(self.all, 1):.0f} %)"


def lines_of(name: str, session: str) -> Lines:
    """Those of the SDK of a language in a session of the tests."""
    sdk, data = SDKS[name], sdks.data_of(SDKS[name], session)
    return {"python": _python, "typescript": _typescript, "go": _go}[name](sdk, data)


def _python(sdk: Sdk, data: Path) -> Lines:
    environ = sdk.measured(data)
    coverage = [sys.executable, "-m", "coverage"]
    sdks.run(sdk, [*coverage, "combine", "--quiet"], **environ)
    sdks.run(sdk, [*coverage, "json", "--quiet", "-o", str(data / "report.json")], **environ)
    totals = json.loads((data / "report.json").read_text())["totals"]
    return Lines(totals["covered_lines"], totals["num_statements"])


def _typescript(sdk: Sdk, data: Path) -> Lines:
    where = [f"--temp-directory={data}", f"--reports-dir={data / 'report'}", "--reporter=json-summary"]
    sdks.run(sdk, ["node", "node_modules/c8/bin/c8.js", "report", *where])
    totals = json.loads((data / "report" / "coverage-summary.json").read_text())["total"]["lines"]
    return Lines(totals["covered"], totals["total"])


def _go(sdk: Sdk, data: Path) -> Lines:
    by_driver = data / "driver.lines"
    sdks.run(sdk, ["go", "tool", "covdata", "textfmt", f"-i={data}", f"-o={by_driver}"])
    profiles = [each for each in (by_driver, data / "tests.lines") if each.exists()]
    seen = merged(line for profile in profiles for line in profile.read_text().splitlines())
    return Lines(sum(seen.values()), len(seen))


def merged(profile: Iterable[str]) -> dict[tuple[str, int], bool]:
    """Of each line that a block of a Go profile stands on, whether any block on it was run."""
    seen: dict[tuple[str, int], bool] = {}
    for place, was_run in _blocks(profile):
        seen[place] = seen.get(place, False) or was_run
    return seen


def _blocks(profile: Iterable[str]) -> Iterator[tuple[tuple[str, int], bool]]:
    for line in profile:
        block = _BLOCK.match(line)
        if block is None or "/conformance/" in block[1]:
            continue
        for number in range(int(block[2]), int(block[3]) + 1):
            yield (block[1], number), block[4] != "0"
