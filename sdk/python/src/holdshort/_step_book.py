"""Which stored step a call of `step` is. Book-keeping only: no clock, no I/O, no tasks.

A place names the way that a task came: `""` is the beginning of the run's main task, `analyse#1` is behind that step,
`analyse#1!enrich` behind a step that raised there, and `analyse#1/fetch/2` the beginning of the second task that was
started there and whose first step is fetch. Each stored step keeps the place that it stands at (`previous`), and
replaying the same code comes to the same places, in whatever order its tasks get along. So a task looks at its place:
what stands there under the name it asks for is its step; another name means that the code was changed.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import NamedTuple

from holdshort._errors import StepMismatch
from holdshort._wire import Step

_LONGEST = 256
_ESCAPES = str.maketrans({"%": "%25", "#": "%23", "!": "%21", "/": "%2F"})
_TAIL = re.compile(r"!([^#!/]*)\Z|/[^#!/]*/\d+\Z")


class Place(NamedTuple):
    """Where a task stands.

    Args:
        here: the name of the place.
        earlier: where earlier tries of the run stood after as many steps, when some of theirs raised that did not
            now: what followed a failure then may follow a success now.
        last: the name of the step behind which this is, where `earlier` matters.
        sure: False once this try went another way than an earlier one: then other names prove nothing.
    """

    here: str = ""
    earlier: tuple[str, ...] = ()
    last: str = ""
    sure: bool = True


def label(name: str, occurrence: int) -> str:
    """The place behind a step that is stored."""
    return f"{name}#{occurrence}"


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
            if step.previous is not None:
                self._stored.setdefault(step.previous, {}).setdefault(step.name, step)
                self._passed.update(_way_to(step.previous))

    def find(self, place: Place, name: str) -> Step | None:
        """The stored step that this call is; None for one that was never stored.

        Raises:
            StepMismatch: another step stands here, so the code is not what it was.
        """
        here = self._stored.get(place.here, {})
        if name in here:
            return here[name]
        if here and place.sure:
            raise StepMismatch.between(place.here, expected=next(iter(here)), got=name)
        others = (self._stored.get(way, {}).get(name) for way in self._earlier(place, name))
        return next((step for step in others if step is not None), None)

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
        ways = (place.here, *self._earlier(place, step.name))
        raised = (_raised(way, step.name) for way in ways)
        earlier = tuple(way for way in raised if way in self._passed)
        sure = place.sure and not earlier and step.previous == place.here
        return Place(label(step.name, step.occurrence), earlier, step.name, sure)

    def raised(self, place: Place, name: str) -> Place:
        """The place behind a step that raised."""
        earlier = tuple(_raised(way, name) for way in self._earlier(place, name))
        return Place(_raised(place.here, name), earlier, name, place.sure)

    def forked(self, place: Place, first: str, rank: int) -> Place:
        """The beginning of a task that was started here.

        Args:
            place: where its starter stood.
            first: what it does first.
            rank: the how-many-eth it is of those that were started here and do that first.
        """
        earlier = tuple(_forked(way, first, rank) for way in self._earlier(place, ""))
        return Place(_forked(place.here, first, rank), earlier, "", place.sure)

    def _earlier(self, place: Place, name: str) -> list[str]:
        """Where earlier tries may have stood when they called this.

        A name that is called again counts its calls. Another one may come after any number of them: a step that
        raised and was called until it succeeded takes as many calls as it happens to take.
        """
        ways = list(place.earlier)
        if name == place.last:
            return ways
        for way in ways:  # grows while it is read
            ways.extend(further for further in self._behind(way, place.last) if further not in ways)
        return ways

    def _behind(self, way: str, name: str) -> Iterator[str]:
        raised = _raised(way, name)
        if raised in self._passed:
            yield raised
        if step := self._stored.get(way, {}).get(name):
            yield label(step.name, step.occurrence)


def _raised(way: str, name: str) -> str:
    return _folded(f"{way}!{name.translate(_ESCAPES)}")


def _forked(way: str, first: str, rank: int) -> str:
    return _folded(f"{way}/{first.translate(_ESCAPES)}/{rank}")


def _folded(way: str) -> str:
    """The name itself, as far as the control plane takes names that long."""
    return way if len(way) <= _LONGEST else f"~{sha256(way.encode()).hexdigest()}"


def _way_to(place: str) -> Iterator[str]:
    """The place and those before it, back to the last step that is stored."""
    yield place
    while tail := _TAIL.search(place):
        place = place[: tail.start()]
        yield place
