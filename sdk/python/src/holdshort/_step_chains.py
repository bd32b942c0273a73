"""Where each task and thread of a run stands among its steps; found again by what was started where, never by time."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType
from typing import Any, NamedTuple, Optional
from weakref import ref

from holdshort._step_book import Book, Place
from holdshort._step_calls import Deed
from holdshort._step_tasks import known


class Chain:
    """The steps of one task or thread, one after the other.

    Args:
        place: where it begins.
        owner: the task or thread; the first that asks when it is not known yet.
    """

    def __init__(self, place: Place, owner: object | None = None) -> None:
        self.place = place
        self.born_of: object = None
        self._owner = None if owner is None else ref(owner)
        self._raised: tuple[Place, str, tuple[object, ...]] | None = None

    def belongs_to(self, owner: object) -> bool:
        """True for its task or thread."""
        if self._owner is None:
            self.give_to(owner)
        return self._owner is not None and self._owner() is owner

    def give_to(self, owner: object) -> None:
        """Go on in this task or thread."""
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
    place: Place
    rank: int


class _Standing(NamedTuple):
    """What a task inherits: which run's steps, whose chain, and where that stood when the task was created."""

    chains: "Chains"
    chain: Chain
    place: Place
    outer: Optional["_Standing"]


_standing: ContextVar[_Standing | None] = ContextVar("holdshort_steps", default=None)
_inside: ContextVar["Chains | None"] = ContextVar("holdshort_inside_step", default=None)


class Chains:
    """The chains of one run.

    A task's chain begins where its creator stood, as the how-many-eth of its kind that was created there: of the calls
    of step under one name in the order of the calls, of other coroutines by the name of their function. Threads have
    no creator that could be asked; theirs begin with what they do first.

    Args:
        book: of the same run.
        called: the code of the coroutines that tickets are for.
    """

    def __init__(self, book: Book, called: CodeType) -> None:
        self._book = book
        self._called = called
        self._ranks: Counter[tuple[str, str]] = Counter()
        self._raised: dict[tuple[str, str], list[tuple[tuple[object, ...], int]]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """While the run's main task, which this is, is in the run."""
        root = Chain(Place(), _me())
        token = _standing.set(_Standing(self, root, root.place, _standing.get()))
        try:
            with known(_heir):
                yield
        finally:
            _standing.reset(token)

    @property
    def inside(self) -> bool:
        """True in what a step does."""
        return _inside.get() is self

    @contextmanager
    def within(self) -> Iterator[None]:
        """While a step is done: what it calls is no step of its own."""
        token = _inside.set(self)
        try:
            yield
        finally:
            _inside.reset(token)

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

    def call(self, deed: Deed) -> Ticket:
        """Take a call's rank now: a coroutine may be given to a task of its own, and those run in any order."""
        place = self.here(deed.name).place
        return Ticket(deed, place, self._rank_before(place, deed) or self._take(place, deed.name))

    def awaited(self, ticket: Ticket) -> tuple[Chain, bool]:
        """The chain that a call turns out to belong to, and whether a task was made of it that has no other steps."""
        me, standing = _me(), self._find()
        if standing is not None and standing.chain.belongs_to(me):
            self._give_back(ticket.place, ticket.deed.name, ticket.rank)
            return standing.chain, False
        return self._fork(me, ticket.place, ticket.deed.name, ticket.rank), True

    def done(self, chain: Chain, behind: Place) -> None:
        """Go on behind a step that is stored."""
        chain.place = behind
        self._moved(chain)

    def raised(self, chain: Chain, ticket: Ticket, place: Place, *, alone: bool) -> None:
        """Go on behind a call that raised at this place; the same call again is known for the one that it repeats."""
        name, same = ticket.deed.name, ticket.deed.same()
        chain.raised(place, name, same, self._book.raised(place, name))
        if alone:
            with self._lock:
                self._raised.setdefault((ticket.place.here, name), []).append((same, ticket.rank))
        self._moved(chain)

    def bear(self, standing: _Standing, coroutine: Any) -> Callable[[Any], None] | None:
        """Give a task that is being created its chain; returns what is to be told the task."""
        if getattr(coroutine, "cr_code", None) is self._called or standing.chain.born_of is coroutine:
            return None
        kind = f"&{getattr(coroutine, '__qualname__', type(coroutine).__name__)}"
        chain = Chain(self._book.forked(standing.place, kind, self._take(standing.place, kind)))
        chain.born_of = coroutine
        self._moved(chain)

        def born(task: Any) -> None:
            chain.born_of = None
            chain.give_to(task)

        return born

    def _moved(self, chain: Chain) -> None:
        """Let tasks that are created from now on be known by where this one stands now."""
        standing = self._find()
        _standing.set(_Standing(self, chain, chain.place, standing.outer if standing else _standing.get()))

    def _fork(self, me: object, place: Place, first: str, rank: int) -> Chain:
        chain = Chain(self._book.forked(place, first, rank), me)
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
        key = (place.here, first)
        with self._lock:
            if self._ranks[key] == rank:
                self._ranks[key] -= 1
            if not self._ranks[key]:
                del self._ranks[key]


def _heir(coroutine: Any) -> Callable[[Any], None] | None:
    """Called in the context of a task that is being created; outside runs and inside steps it is not counted."""
    standing = _standing.get()
    if standing is None or standing.chains.inside:
        return None
    return standing.chains.bear(standing, coroutine)


def _me() -> object:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    return task or threading.current_thread()
