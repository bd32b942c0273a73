"""What was seen, as it happens and as a table or JSON at the end."""

import sys
import time
from typing import NamedTuple

import click
from msgspec import json
from rich.console import Console
from rich.table import Table

from controlplane.cli.demo.programs import Program

WIDTH_OF_A_PIPE = 160


class Seen(NamedTuple):
    """One thing that was seen: in which step, what, and how many seconds it took."""

    step: str
    what: str
    seconds: float


class Screen:
    """Says things line by line: in colour on a terminal, plainly elsewhere, or not at all.

    Args:
        quiet: say nothing, so that the output is JSON only.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        terminal = sys.stdout.isatty()
        self.console = Console(width=None if terminal else WIDTH_OF_A_PIPE, highlight=False, quiet=quiet)

    def heading(self, text: str) -> None:
        """Say what begins, or what is to be done."""
        self.console.print(text, style="bold", markup=False, soft_wrap=True)

    def say(self, text: str) -> None:
        """Say a line as it is: a command in it can be copied whole."""
        self.console.print(text, markup=False, soft_wrap=True)


class Report:
    """Collects what is seen, and says it at once.

    Args:
        screen: where it is said.
    """

    def __init__(self, screen: Screen) -> None:
        self.begun = time.monotonic()
        self.seen: list[Seen] = []
        self._screen = screen

    def add(self, step: str, what: str, seconds: float) -> None:
        """Keep and say what was seen."""
        self.seen.append(Seen(step, what, seconds))
        self._screen.say(f"  {duration(seconds):>8}  {what}")

    def table(self) -> None:
        """Print everything that was seen."""
        table = Table("step", "seen", "took", box=None, pad_edge=False)
        table.columns[2].justify = "right"
        shown = ""
        for seen in self.seen:
            table.add_row("" if seen.step == shown else seen.step, seen.what, duration(seen.seconds))
            shown = seen.step
        self._screen.console.print("\n", table, "\n", sep="")
        self._screen.heading(f"All of it was seen, in {time.monotonic() - self.begun:.1f} s.")

    def document(self, fault: str | None) -> None:
        """Print everything as JSON; `fault` is what was not seen."""
        document = {
            "ok": fault is None,
            "seconds": round(time.monotonic() - self.begun, 3),
            "seen": [{"step": s.step, "what": s.what, "seconds": round(s.seconds, 4)} for s in self.seen],
            "fault": fault,
        }
        click.echo(json.format(json.encode(document), indent=2).decode())


def say_tails(programs: tuple[Program, ...]) -> None:
    """Print the last lines of each program to standard error, for a demo that failed."""
    for program in (each for each in programs if each.pid):
        click.echo(f"-- {program.name} --", err=True)
        for line in program.tail():
            click.echo(line, err=True)


def duration(seconds: float) -> str:
    """Seconds for people."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
