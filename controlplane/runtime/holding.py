"""What is held open under something that can end: a key, a session."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

End = Callable[[], None]
Under = TypeVar("Under", bound=Hashable)


class Holding(Generic[Under]):
    """Who is to be told when what they are held open under ends."""

    def __init__(self) -> None:
        """Nothing is held open yet."""
        self._ends: dict[Under, set[End]] = {}

    def __iter__(self) -> Iterator[Under]:
        """Under what something is held open; it may change meanwhile."""
        return iter(list(self._ends))

    @contextmanager
    def under(self, it: Under, end: End) -> Iterator[None]:
        """For the length of a block `end` is called when `it` ends."""
        self._ends.setdefault(it, set()).add(end)
        try:
            yield
        finally:
            others = self._ends.get(it, set())
            others.discard(end)
            if not others:
                self._ends.pop(it, None)

    def end(self, it: Under) -> None:
        """Tell everybody who is held open under this."""
        for end in list(self._ends.get(it, ())):
            end()
