"""What the open pages of a process are told: kept once for all of them, and drawn once."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from controlplane.runtime.pulse import Pulse

KEPT = 5_000

Draw = Callable[[Any], bytes]


class Told:
    """One thing that pages are told; the first that sends it draws it, the others send what was drawn."""

    __slots__ = ("_drawn", "what")

    def __init__(self, what: object) -> None:
        """Not drawn yet."""
        self.what = what
        self._drawn: bytes | None = None

    def drawn(self, draw: Draw) -> bytes:
        """It as it is sent, by the same `draw` each time."""
        if self._drawn is None:
            self._drawn = draw(self.what)
        return self._drawn


class Desk:
    """The newest things that were told, what stands among them, and a place in them for each reader.

    A reader that takes nothing costs nothing but its place: nobody waits for it, and once it is 5,000 behind it is told
    that it missed something. `standing` is what whoever begins to read is told first, by a name for each.
    """

    def __init__(self) -> None:
        """Nothing told, nobody there."""
        self.standing: dict[str, Told] = {}
        self._told: deque[Told] = deque(maxlen=KEPT)
        self._count = 0
        self._pulse = Pulse()
        self._readers = 0

    @property
    def anybody(self) -> bool:
        """Whether somebody reads."""
        return self._readers > 0

    @property
    def place(self) -> int:
        """The place after everything that was told; take it before looking at anything."""
        return self._count

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While somebody reads; what nobody reads needs not be looked up."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1

    def tell(self, *whats: object) -> None:
        """Tell everybody, in this order."""
        self._add([Told(what) for what in whats])

    def put_up(self, name: str, what: object) -> None:
        """Tell everybody something that stands until it is taken down, and whoever comes until then."""
        self.standing[name] = Told(what)
        self._add([self.standing[name]])

    def take_down(self, name: str, what: object) -> None:
        """Tell everybody that something stands no longer."""
        self.standing.pop(name, None)
        self.tell(what)

    def begin_anew(self, standing: Mapping[str, object] | None = None) -> None:
        """Have everybody begin anew, with what stands now where that is given."""
        if standing is not None:
            self.standing = {name: Told(what) for name, what in standing.items()}
        self._told.clear()
        self._count += 1
        self._pulse.beat()

    def wake(self) -> None:
        """Let everybody look whether they still may read."""
        self._pulse.beat()

    async def after(self, place: int, seconds: float) -> list[Told] | None:
        """What was told after a place, as soon as something was; nothing when the time has passed, or on `wake`.

        None says that some of it is not kept any more: whoever read up to there begins anew.
        """
        if place == self._count:
            await self._pulse.after(self._pulse.mark, seconds)
        behind = self._count - place
        if behind > len(self._told):
            return None
        return [self._told[index] for index in range(len(self._told) - behind, len(self._told))]

    def _add(self, told: list[Told]) -> None:
        self._told.extend(told)
        self._count += len(told)
        if told:
            self._pulse.beat()
