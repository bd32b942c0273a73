"""The long form: jobs side by side in processes of their own, a line that says how far they are, and a table."""

import argparse
import importlib.util
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.outcomes import CACHE, ROOT
from tests.fuzz.structured import PROPERTIES
from tests.fuzz.targets import BY_NAME, TARGETS

INPUTS = 1_100_000
API_REQUESTS = 4_000
MINUTES = 20.0
# Of a target's inputs: what is guided costs most for each, and what hypothesis puts together even more.
GUIDED, STRUCTURED, CONNECTIONS = 0.15, 0.03, 0.01
COSTS = {"seeded": 1, "guided": 4, "structured": 50, "served": 1000}
COLUMNS = ("inputs", "seconds", "uncaught", "false accepts", "disagreements")


@dataclass
class Job:
    """One engine on one target."""

    engine: str
    name: str
    inputs: int
    seed: int
    done: bool = False
    told: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} ({self.engine})"

    @property
    def faults(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.told.get("faults", [])
        return found

    def count(self, kind: str) -> int:
        return sum(fault["count"] for fault in self.faults if fault["kind"] == kind)

    def row(self) -> dict[str, Any]:
        kinds = ("uncaught", "false accept", "disagreement")
        values = (self.told.get("inputs", 0), self.told.get("seconds", 0.0), *map(self.count, kinds))
        return {"target": self.name, "engine": self.engine, **dict(zip(COLUMNS, values, strict=True))}

    def run(self, until: float) -> None:
        """Run in a process of its own, to its end or until the time is up."""
        left = max(1.0, until - time.monotonic())
        command = [sys.executable, "-m", "tests.fuzz.worker", self.engine, self.name]
        command += [str(self.inputs), str(left), str(self.seed)]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environ()
        ) as process:
            # Read beside the other, as either may fill up.
            errors: list[str] = []
            reader = threading.Thread(target=lambda: errors.extend(process.stderr or ()), daemon=True)
            reader.start()
            for line in process.stdout or ():
                if line.startswith("{"):
                    self.told |= json.loads(line)
            reader.join()
        self.done = True
        if not self.told.get("done"):
            self.error = "".join(errors[-15:]) or f"ended with {process.returncode}"


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; 0 when nothing was found and everything ran."""
    asked = _parsed(arguments)
    if asked.again:
        return again(*asked.again)
    jobs, missing = plan(asked.inputs, asked.seed, set(asked.only or ()))
    if missing:
        print(f"atheris is not installed ({missing}); the guided part is left out", file=sys.stderr)
    began = time.monotonic()
    run(jobs, asked.jobs, began + 60 * asked.minutes)
    return report(jobs, asked, time.monotonic() - began, missing)


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description="Hostile bytes, at length.")
    parser.add_argument("--inputs", type=int, default=INPUTS, help=f"in all, {INPUTS:,} by default")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"at most, {MINUTES:g} by default")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31), help="a random one by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--only", action="append", metavar="TARGET", help="one target; may be given again")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--again", nargs=2, metavar=("TARGET", "HEX"), help="try one input again, with its traceback")
    return parser.parse_args(arguments)


def plan(inputs: int, seed: int, only: set[str]) -> tuple[list[Job], str]:
    """The jobs that come to so many inputs, the long ones first; and why nothing is guided, if so."""
    missing = "" if importlib.util.find_spec("atheris") else "it has wheels for Linux on x86-64 alone"
    shares = sum(target.share for target in TARGETS)
    jobs = []
    for number, target in enumerate(TARGETS):
        mine = inputs * target.share // shares
        guided = 0 if missing else round(mine * GUIDED)
        structured = round(mine * STRUCTURED) if target.name in PROPERTIES else 0
        parts = {"seeded": mine - guided - structured, "guided": guided, "structured": structured}
        jobs += [Job(engine, target.name, part, seed + number) for engine, part in parts.items() if part]
    jobs += [Job("served", "api", min(API_REQUESTS, inputs), seed)]
    jobs += [Job("served", "connections", max(1, round(inputs * CONNECTIONS)), seed)]
    wanted = [job for job in jobs if not only or job.name in only]
    return sorted(wanted, key=lambda job: job.inputs * COSTS[job.engine], reverse=True), missing


def run(jobs: list[Job], at_once: int, until: float) -> None:
    """Run the jobs, some at once, saying each second how far they are."""
    waiting, lock = iter(jobs), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                job = next(waiting, None)
            if job is None:
                return
            job.run(until)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(at_once)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        threads[0].join(1.0) if threads[0].is_alive() else time.sleep(0.2)
        _say(jobs)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def report(jobs: list[Job], asked: argparse.Namespace, seconds: float, missing: str) -> int:
    """Print what came of it; 1 when anything was found, did not run, or there were too few inputs."""
    rows = [job.row() for job in sorted(jobs, key=lambda job: (job.name, job.engine))]
    total = {name: sum(row[name] for row in rows) for name in COLUMNS} | {"seconds": round(seconds, 1)}
    broken = [job for job in jobs if job.error]
    # How many requests come of an example the API's description says.
    short = [job for job in jobs if job.name != "api" and job.told.get("inputs", 0) < job.inputs]
    unguided = bool(missing and os.environ.get("CI"))
    bad = bool(broken or short or unguided or any(job.faults for job in jobs))
    kept = _kept(jobs, asked.seed) if any(job.faults for job in jobs) else None
    if asked.json:
        result = {"seed": asked.seed, "targets": rows, "total": total, "ok": not bad, "failures": str(kept or "")}
        print(json.dumps(result, indent=1))
        return int(bad)
    print("\n".join(_table([*rows, {"target": "all", "engine": "", **total}])))
    print(f"seed {asked.seed}; the same again: make fuzz ARGS='--seed {asked.seed} --inputs {asked.inputs}'")
    lines = [*map(_of_the_api, filter(lambda job: job.name == "api", jobs)), *_findings(jobs)]
    lines += [f"\n{job.title} did not end:\n{job.error}" for job in broken]
    if short:
        lines.append(
            f"\ncut short after {asked.minutes:g} minutes (--minutes): {', '.join(job.title for job in short)}"
        )
    if unguided:
        lines.append("\nthe guided part did not run: atheris is not installed")
    if kept:
        lines.append(f"\nkept in {kept}")
    print("\n".join(lines))
    return int(bad)


def again(name: str, text: str) -> int:
    """Try one input once more; whatever it raises is shown as it is."""
    print(f"{name}: {BY_NAME[name].attempt(bytes.fromhex(text))}")
    return 0


def _say(jobs: list[Job]) -> None:
    done = sum(job.done for job in jobs)
    inputs = sum(job.told.get("inputs", 0) for job in jobs)
    faults = sum(len(job.faults) for job in jobs)
    now = ", ".join(job.title for job in jobs if job.told and not job.done)
    line = f"{inputs:,} inputs, {done} of {len(jobs)} jobs, {faults} kinds of faults; {now}"
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line[:110]}", end="", file=sys.stderr, flush=True)
    elif int(time.monotonic()) % 15 == 0:
        print(line, file=sys.stderr, flush=True)


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    names = ("target", "engine", *COLUMNS)
    texts = [names, *(tuple(_shown(row[name]) for name in names) for row in rows)]
    widths = [max(len(text[place]) for text in texts) for place in range(len(names))]
    for text in texts:
        cells = zip(text, widths, strict=True)
        yield "  ".join(
            f"{cell:<{width}}" if place < 2 else f"{cell:>{width}}" for place, (cell, width) in enumerate(cells)
        )


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _of_the_api(job: Job) -> str:
    failed = job.told.get("words", {}).get("5xx", 0)
    undescribed = job.count("uncaught") + job.count("disagreement")
    requests = job.told.get("inputs", 0)
    return f"api: {requests:,} requests, {failed} answers of 500 and more, {undescribed} that are not described"


def _findings(jobs: list[Job]) -> Iterator[str]:
    for job in jobs:
        for fault in job.faults:
            yield f"\n{job.title}: {fault['kind']} x {fault['count']} at {fault['place']}\n  {fault['message']}"
            if job.name in BY_NAME and job.engine != "structured":
                yield f"  again: .venv/bin/python -m tests.fuzz --again {job.name} {fault['inputs'][0]}"
            else:
                yield f"  {fault['inputs'][0]}\n  again: make fuzz ARGS='--only {job.name} --seed {job.seed}'"


def _kept(jobs: list[Job], seed: int) -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    path = CACHE / f"failures-{seed}.json"
    found = [
        {"target": job.name, "engine": job.engine, "seed": job.seed, **fault} for job in jobs for fault in job.faults
    ]
    path.write_text(json.dumps(found, indent=1))
    return path


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
