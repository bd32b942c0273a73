"""Where each task and thread of a run stands among its steps; found again by what was started where, never by time."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, Optional
from weakref import ref

import msgspec

from holdshort._step_book import Book, Place


class Deed(NamedTuple):
    """One call of `step`: its name, what it does, and the type of what that returns."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    kind: Any

    def same(self) -> tuple[object, ...]:
        """Equal for calls of the same function with equal arguments, as they are now."""
        named = tuple((name, _as_it_is(value)) for name, value in sorted(self.kwargs.items()))
        return (self.function, tuple(map(_as_it_is, self.args)), named)


class Chain:
    """The steps of one task or thread, one after the other.

    Args:
        owner: the task or thread.
        place: where it begins.
    """

    def __init__(self, owner: object, place: Place) -> None:
        self._owner = ref(owner)
        self.place = place
        self.made_of: Ticket | None = None
        self._raised: tuple[Place, str, tuple[object, ...]] | None = None

    def belongs_to(self, owner: object) -> bool:
        """True for its task or thread."""
        return self._owner() is owner

    def give_to(self, owner: object) -> None:
        """Go on in another thread."""
        self._owner = ref(owner)

    def place_of(self, deed: Deed) -> Place:
        """Where this call stands: a call that raised is tried again at its place when it comes again at once."""
        raised, self._raised = self._raised, None
        if raised is not None and raised[1:] == (deed.name, deed.same()):
            return raised[0]
        return self.place

    def raised(self, place: Place, name: str, same: tuple[object, ...], behind: Place) -> None:
        """Go on behind a call that raised, unless the next one is the same."""
        self._raised = (place, name, same)
        self.place = behind


class Ticket(NamedTuple):
    """A call of `step` that was made, and may be awaited in a task of its own later."""

    deed: Deed
    chain: Chain
    place: Place
    rank: int


class _Standing(NamedTuple):
    """What a task inherits: which run's steps, whose chain, and where that stood when the task was created."""

    chains: "Chains"
    chain: Chain
    place: Place
    outer: Optional["_Standing"]


_standing: ContextVar[_Standing | None] = ContextVar("holdshort_steps", default=None)


class Chains:
    """The chains of one run.

    A task's first step, or pause, makes its chain; it is known by where its starter stood, what it does first, and the
    how-many-eth it is of those alike, in the order of their calls.

    Args:
        book: of the same run.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._ranks: Counter[tuple[str, str]] = Counter()
        self._raised: dict[tuple[str, str], list[tuple[tuple[object, ...], int]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """While the run's main task, which this is, is in the run."""
        root = Chain(_me(), Place())
        token = _standing.set(_Standing(self, root, root.place, _standing.get()))
        try:
            yield
        finally:
            _standing.reset(token)

    def moved_here(self) -> None:
        """Take this thread for the one that its starter's chain goes on in."""
        if standing := self._find():
            standing.chain.give_to(_me())

    def here(self, first: str) -> Chain:
        """The chain of this task or thread, new when this is the first that it does."""
        me, standing = _me(), self._find()
        if standing is not None and standing.chain.belongs_to(me):
            return standing.chain
        place = standing.place if standing else Place()
        return self._fork(me, place, first, self._take(place, first))

    def called(self, deed: Deed) -> Ticket:
        """Take a call's rank now: a coroutine may be given to a task of its own, and those run in any order."""
        chain = self.here(deed.name)
        rank = self._rank_before(chain.place, deed) or self._take(chain.place, deed.name)
        return Ticket(deed, chain, chain.place, rank)

    def awaited(self, ticket: Ticket) -> Chain:
        """The chain that a call turns out to belong to: its awaiter's, or a new one when a task was made of it."""
        me, standing = _me(), self._find()
        name = ticket.deed.name
        if standing is not None and standing.chain.belongs_to(me):
            self._give_back(ticket.place, name, ticket.rank)
            return standing.chain
        chain = self._fork(me, ticket.place, name, ticket.rank)
        chain.made_of = ticket
        return chain

    def done(self, chain: Chain, behind: Place) -> None:
        """Go on behind a step that is stored."""
        chain.place = behind
        self._moved(chain)

    def raised(self, chain: Chain, ticket: Ticket, place: Place) -> None:
        """Go on behind a call that raised at this place; the same call again is known for the one that it repeats."""
        name, same = ticket.deed.name, ticket.deed.same()
        chain.raised(place, name, same, self._book.raised(place, name))
        if chain.made_of is ticket:
            with self._lock:
                self._raised.setdefault((ticket.place.here, name), []).append((same, ticket.rank))
        self._moved(chain)

    def _moved(self, chain: Chain) -> None:
        """Let tasks that are created from now on be known by where this one stands now."""
        standing = self._find()
        _standing.set(_Standing(self, chain, chain.place, standing.outer if standing else _standing.get()))

    def _fork(self, me: object, place: Place, first: str, rank: int) -> Chain:
        chain = Chain(me, self._book.forked(place, first, rank))
        self._moved(chain)
        return chain

    def _rank_before(self, place: Place, deed: Deed) -> int | None:
        """The rank of an equal call that raised in a task of its own."""
        with self._lock:
            before = self._raised.get((place.here, deed.name), [])
            same = deed.same() if before else ()
            number = next((number for number, (other, _) in enumerate(before) if other == same), None)
            return None if number is None else before.pop(number)[1]

    def _find(self) -> _Standing | None:
        standing = _standing.get()
        while standing is not None and standing.chains is not self:
            standing = standing.outer
        return standing

    def _take(self, place: Place, first: str) -> int:
        with self._lock:
            self._ranks[place.here, first] += 1
            return self._ranks[place.here, first]

    def _give_back(self, place: Place, first: str, rank: int) -> None:
        with self._lock:
            if self._ranks[place.here, first] == rank:
                self._ranks[place.here, first] -= 1


def _me() -> object:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()


def _as_it_is(value: Any) -> object:
    """The value as it is now, or at least which one it is."""
    try:
        return msgspec.json.encode(value)
    except Exception:  # whatever an argument may be
        return _Itself(value)


class _Itself:
    """Equal to nothing but the same object."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other._value is self._value

    __hash__ = None  # type: ignore[assignment]  # never looked up
