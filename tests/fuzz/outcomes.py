"""What a try of a target came to, and the tally of many: how much ran, and each kind of fault once with its input."""

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "fuzz"
EXAMPLES_KEPT = 3


class FalseAccept(AssertionError):
    """Something was let through that a second, simpler reading of the rule refuses."""


class Disagreement(AssertionError):
    """Two readings of the rule differ in another way: a wrong refusal, a wrong meaning, two implementations."""


@dataclass(frozen=True)
class Target:
    """What takes hostile bytes.

    Attributes:
        name: its name in tables and on the command line.
        attempt: takes bytes, returns a word for what came of them, and raises only for a fault.
        share: how many of a long run's inputs it gets, beside the others.
        meets: words that even a short run meets; otherwise it would test nothing.
    """

    name: str
    attempt: Callable[[bytes], str]
    share: int
    meets: frozenset[str]


@dataclass
class Fault:
    """One kind of fault, with the shortest inputs that led to it."""

    kind: str
    place: str
    message: str
    count: int = 0
    inputs: list[str] = field(default_factory=list)

    def add(self, data: str) -> None:
        self.count += 1
        if data not in self.inputs:
            self.inputs = sorted([*self.inputs, data], key=len)[:EXAMPLES_KEPT]


class Tally:
    """Runs a target and counts."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.inputs = 0
        self.words = Counter[str]()
        self.faults: dict[tuple[str, str], Fault] = {}
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def count(self, *kinds: str) -> int:
        """How many inputs led to faults of these kinds; "uncaught" is whatever no oracle raised."""
        return sum(fault.count for fault in self.faults.values() if fault.kind in kinds)

    def run(self, inputs: Iterable[bytes]) -> "Tally":
        for data in inputs:
            self.take(data)
        return self

    def take(self, data: bytes) -> None:
        """Try one input; a fault is noted, and the next one tried."""
        self.judge(self.target.attempt, data)

    def judge(self, attempt: Callable[[Any], str], data: object) -> None:
        """As `take`, for what is no bytes."""
        self.inputs += 1
        try:
            self.words[attempt(data)] += 1
        except Exception as error:  # whatever it is, it is what is looked for
            self._note(error, data.hex() if isinstance(data, bytes) else repr(data))

    def _note(self, error: Exception, data: str) -> None:
        kind, place = _kind(error), _place(error)
        self.words[kind] += 1
        fault = self.faults.setdefault((kind, place), Fault(kind, place, f"{type(error).__name__}: {error}"[:400]))
        fault.add(data)

    def told(self) -> str:
        """The faults for people."""
        return "\n".join(
            f"{fault.kind} x {fault.count} at {fault.place}: {fault.message}\n  {fault.inputs[0]}"
            for fault in self.faults.values()
        )


def _kind(error: Exception) -> str:
    if isinstance(error, FalseAccept):
        return "false accept"
    return "disagreement" if isinstance(error, Disagreement) else "uncaught"


def _place(error: Exception) -> str:
    """Where it was raised: two faults of one place count as one kind."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if str(ROOT) in each.filename and ".venv" not in each.filename] or frames
    last = own[-1]
    return f"{Path(last.filename).relative_to(ROOT) if str(ROOT) in last.filename else last.filename}:{last.lineno}"
