"""Who waits in this process for the answers to short-lived questions: what keeps the questions standing."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Askers:
    """The questions that calls of this process wait for, each as often as there are calls."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self._waiting = Counter[str]()

    @contextmanager
    def waiting(self, unique_id: str) -> Iterator[None]:
        """While a call waits whose question this is."""
        self._waiting[unique_id] += 1
        try:
            yield
        finally:
            self._waiting[unique_id] -= 1
            if not self._waiting[unique_id]:
                del self._waiting[unique_id]

    def unique_ids(self) -> list[str]:
        """The questions that somebody waits for here."""
        return sorted(self._waiting)
