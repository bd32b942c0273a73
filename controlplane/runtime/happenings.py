"""What was committed anywhere, told within this process to whoever keeps a picture of it."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, NamedTuple, TypeVar

Heard = TypeVar("Heard")
MOST_KEPT = 10_000


class Happening(NamedTuple):
    """A history row that was committed: its type, and what it is about; `unique_id` is a short-lived question's."""

    type: str
    execution_id: str | None
    approval_id: str | None
    unique_id: str | None = None


class Ear(Generic[Heard]):
    """One listener: what has happened since it last took."""

    def __init__(self) -> None:
        """Nothing heard yet."""
        self._heard: list[Heard] = []
        self._missed = False
        self._woken = asyncio.Event()

    def hear(self, happenings: Iterable[Heard]) -> None:
        """Keep what happened until it is taken; past 10,000 only that something was missed."""
        self._heard.extend(happenings)
        if len(self._heard) > MOST_KEPT:
            self._heard.clear()
            self._missed = True
        self._woken.set()

    def wake(self) -> None:
        """Let whoever takes go on, also with nothing."""
        self._woken.set()

    async def take(self, seconds: float) -> list[Heard] | None:
        """What has happened, as soon as something has, or nothing when the time has passed or somebody wakes it.

        None says that more happened than could be kept: look at everything anew.
        """
        if not self._heard and not self._missed:
            self._woken.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._woken.wait()
            except TimeoutError:
                return []
        heard, missed = self._heard, self._missed
        self._heard, self._missed = [], False
        return None if missed else heard


class Happenings:
    """Tells every listener of this process what the tail saw, each row once, in no order."""

    def __init__(self) -> None:
        """Nobody listens yet."""
        self._ears: set[Ear[Happening]] = set()

    @contextmanager
    def listening(self) -> Iterator[Ear[Happening]]:
        """Hear everything from here to the end of a block."""
        ear = Ear[Happening]()
        self._ears.add(ear)
        try:
            yield ear
        finally:
            self._ears.discard(ear)

    def publish(self, happenings: Iterable[Happening]) -> None:
        """Tell what was committed."""
        told = list(happenings)
        for ear in self._ears if told else ():
            ear.hear(told)
