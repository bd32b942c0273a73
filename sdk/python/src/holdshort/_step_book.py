"""Which stored step a call of `step` is. Book-keeping only: no clock, no I/O, no tasks.

A place names the way that a task came: `""` is the beginning of the run's main task, `analyse#1` is behind that step,
`analyse#1!enrich` behind a step that raised there, and `analyse#1/fetch/2` the beginning of the second task that was
made there of a call of the step fetch. Each stored step keeps the place that it stands at (in `previous`), and
replaying the same code comes to the same places, in whatever order its tasks get along. So a task looks at its place:
what stands there under the name it asks for is its step; another name means that the code was changed.

What a step raised is not stored, so a restarted run may go another way: behind a success where it was behind a failure.
Then a call may be a step that stands at the other place; its arguments must prove it, by a digest behind the place.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from holdshort._errors import StepMismatch
from holdshort._wire import Step

_LONGEST = 240
_ESCAPES = str.maketrans({"%": "%25", "#": "%23", "!": "%21", "/": "%2F", "=": "%3D"})
_TAIL = re.compile(r"!([^#!/]*)\Z|/[^#!/]*/\d+\Z")
_PROOF = re.compile(r"=([0-9a-f]*)\Z")


class Place(NamedTuple):
    """Where a task stands.

    Args:
        here: the name of the place.
        earlier: where earlier tries of the run may have stood instead, as some of their steps raised that did not now.
        last: the name of the step behind which this is; earlier tries may have called it more often.
        sure: False once this try went another way than an earlier one: then another name proves nothing.
    """

    here: str = ""
    earlier: tuple[str, ...] = ()
    last: str = ""
    sure: bool = True


def label(step: Step) -> str:
    """The place behind a step that is stored."""
    return f"{step.name}#{step.occurrence}"


def kept_at(place: Place, proof: str) -> str:
    """What a step keeps as its `previous`.

    Args:
        place: where it stands.
        proof: a digest of its arguments, "" where they tell nothing.
    """
    return f"{place.here}={proof}" if proof else place.here


def proof_of(step: Step) -> str:
    """The digest of the arguments that a stored step was done with, "" when it kept none."""
    found = _PROOF.search(step.previous or "")
    return found[1] if found else ""


class Book:
    """The stored steps of one run, by the place they stand at; `open` it before the first step."""

    def __init__(self) -> None:
        self._stored: dict[str, dict[str, Step]] = {}
        self._passed: set[str] = set()
        self._known: Counter[str] = Counter()
        self._numbers: dict[tuple[str, str], int] = {}

    def open(self, stored: Iterable[Step]) -> None:
        """Take in what earlier tries of the run stored."""
        for step in stored:
            self._known[step.name] = max(self._known[step.name], step.occurrence)
            self._stored.setdefault(_place_of(step), {}).setdefault(step.name, step)
            self._passed.update(_way_to(_place_of(step)))

    def close(self) -> None:
        """Forget it all: what a run leaves running may keep this for as long as the process lives."""
        self._stored.clear()
        self._passed.clear()

    def find(self, place: Place, name: str, proof: str) -> Step | None:
        """The stored step that this call is; None for one that was never stored.

        Args:
            place: where it is called.
            name: of the step.
            proof: a digest of its arguments, "" where they tell nothing.

        Raises:
            StepMismatch: another step stands here, so the code is not what it was.
        """
        here = self._stored.get(place.here, {})
        if name in here:
            return here[name]
        if here and place.sure:
            raise StepMismatch.between(place.here, expected=next(iter(here)), got=name)
        others = (self._stored.get(way, {}).get(name) for way in self._earlier(place))
        return next((step for step in others if step is not None and proof and proof_of(step) == proof), None)

    def number(self, place: Place, name: str) -> int:
        """The occurrence of a new step: the next that nobody has; the same when it is tried again at its place."""
        key = (place.here, name)
        if key not in self._numbers:
            self._known[name] += 1
            self._numbers[key] = self._known[name]
        return self._numbers[key]

    def done(self, place: Place, step: Step) -> Place:
        """The place behind a step that is stored."""
        self._numbers.pop((place.here, step.name), None)
        ways = (place.here, *self._earlier(place))
        behind = dict.fromkeys(further for way in ways for further in self._behind(way, step.name))
        earlier = tuple(way for way in behind if way != label(step))
        return Place(label(step), earlier, step.name, place.sure and not earlier)

    def raised(self, place: Place, name: str) -> Place:
        """The place behind a step that raised; an earlier try, whose call did not, may stand before it still."""
        ways = (further for way in self._earlier(place) for further in (way, _raised(way, name)))
        earlier = tuple(dict.fromkeys(way for way in ways if way in self._passed))
        return Place(_raised(place.here, name), earlier, name, place.sure)

    def forked(self, place: Place, kind: str, rank: int) -> Place:
        """The beginning of a task that was created here.

        Args:
            place: where its creator stood.
            kind: what it is made of.
            rank: the how-many-eth of this kind that was created here.
        """
        earlier = tuple(_forked(way, kind, rank) for way in self._earlier(place))
        return Place(_forked(place.here, kind, rank), earlier, "", place.sure)

    def _earlier(self, place: Place) -> list[str]:
        """All places where earlier tries may have stood: a step that raised was called as often as it took."""
        ways = list(place.earlier)
        for way in ways:  # grows while it is read
            ways.extend(further for further in self._behind(way, place.last) if further not in ways)
        return ways

    def _behind(self, way: str, name: str) -> Iterator[str]:
        raised = _raised(way, name)
        if raised in self._passed:
            yield raised
        if step := self._stored.get(way, {}).get(name):
            yield label(step)


def _place_of(step: Step) -> str:
    return _PROOF.sub("", step.previous or "")


def _raised(way: str, name: str) -> str:
    return _folded(f"{way}!{name.translate(_ESCAPES)}")


def _forked(way: str, kind: str, rank: int) -> str:
    return _folded(f"{way}/{kind.translate(_ESCAPES)}/{rank}")


def _folded(way: str) -> str:
    """The name itself, as far as the control plane takes names that long."""
    return way if len(way) <= _LONGEST else f"~{sha256(way.encode()).hexdigest()}"


def _way_to(place: str) -> Iterator[str]:
    """The place and those before it, back to the last step that is stored."""
    yield place
    while tail := _TAIL.search(place):
        place = place[: tail.start()]
        yield place
