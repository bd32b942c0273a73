"""One job of a long run, in a process of its own: `python -m tests.fuzz.worker ENGINE TARGET INPUTS SECONDS SEED`.

| engine | where its inputs come from |
|---|---|
| seeded | bytes from a seed |
| guided | atheris: bytes that reached code which none before them did |
| structured | hypothesis: values of the right shape |
| served | requests from the API's description (TARGET `api`), or raw bytes on a socket (`connections`) |

It prints a line of JSON a second, and a last one that is `done`.
"""

import asyncio
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from tests.fuzz.outcomes import Tally

EVERY_SECONDS = 1.0
LONGEST = 400
FIRST_INPUTS = 100
INSTRUMENTED = ["controlplane.domain", "controlplane.http", "controlplane.settings", "holdshort._webhooks"]


class Report:
    """Says how far a job is, now and then and at its end."""

    def __init__(self, seconds: float) -> None:
        self._began = self._said = time.monotonic()
        self._seconds = seconds

    @property
    def over(self) -> bool:
        """True when the job's time is up."""
        return time.monotonic() - self._began > self._seconds

    def say(self, tally: Tally) -> None:
        if time.monotonic() - self._said >= EVERY_SECONDS:
            self._said = time.monotonic()
            self._write({"inputs": tally.inputs})

    def end(self, tally: Tally) -> None:
        faults = [asdict(fault) for fault in tally.faults.values()]
        self._write({"done": True, "inputs": tally.inputs, "words": dict(tally.words), "faults": faults})

    def _write(self, told: dict[str, Any]) -> None:
        print(json.dumps(told | {"seconds": round(time.monotonic() - self._began, 1)}), flush=True)


def seeded(name: str, inputs: int, seed: int, report: Report) -> None:
    from tests.fuzz.draw import made
    from tests.fuzz.targets import BY_NAME

    tally, source = Tally(BY_NAME[name]), made(seed, inputs)
    while not report.over and (some := list(islice(source, 500))):
        tally.run(some)
        report.say(tally)
    report.end(tally)


def structured(name: str, inputs: int, seed: int, report: Report) -> None:
    from tests.fuzz.structured import examples_of
    from tests.fuzz.targets import BY_NAME

    tally, number = Tally(BY_NAME[name]), 0
    while not report.over and tally.inputs < inputs:
        examples_of(name, min(500, inputs - tally.inputs), seed + number, tally)
        number += 1
        report.say(tally)
    report.end(tally)


def guided(name: str, inputs: int, seed: int, report: Report) -> NoReturn:
    import atheris

    # What was loaded before is not instrumented, and so does not guide.
    with atheris.instrument_imports(include=INSTRUMENTED, enable_loader_override=False):
        targets = importlib.import_module("tests.fuzz.targets")
    from tests.fuzz.draw import made

    tally, corpus = Tally(targets.BY_NAME[name]), Path(tempfile.mkdtemp(prefix="holdshort-fuzz-"))
    for number, data in enumerate(made(seed, FIRST_INPUTS)):
        (corpus / str(number)).write_bytes(data)

    def one(data: bytes) -> None:
        tally.take(data)
        report.say(tally)
        if report.over or tally.inputs >= inputs:
            report.end(tally)
            shutil.rmtree(corpus)
            os._exit(0)  # what drives it would go on for ever

    flags = [f"-seed={seed % 2**31 or 1}", f"-max_len={LONGEST}", "-len_control=0", "-verbosity=0"]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
    atheris.Fuzz()
    raise AssertionError("it does not end by itself")


def served(name: str, inputs: int, seed: int, report: Report) -> None:
    from tests import postgres
    from tests.fuzz.serving import SERVED

    if name == "connections":
        asyncio.run(SERVED[name](None, inputs, seed, report))
        return
    environ = dict(os.environ)
    with (
        postgres.serve(postgres.choose(environ), environ) as server,
        postgres.template(server) as template,
        postgres.clone(server, template) as database,
    ):
        asyncio.run(SERVED[name](database, inputs, seed, report))


ENGINES = {"seeded": seeded, "structured": structured, "guided": guided, "served": served}


def main() -> None:
    engine, name, inputs, seconds, seed = sys.argv[1:]
    ENGINES[engine](name, int(inputs), int(seed), Report(float(seconds)))


if __name__ == "__main__":
    main()
