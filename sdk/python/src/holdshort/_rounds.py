"""How often what was asked: counters from 1 on in start order, the same on every replay."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from holdshort._pauses import Key

_LONGEST_NAME = 200
# Some versions of Python give a comprehension a frame of its own; a run must find its ids again under any of them.
_COMPREHENSION = re.compile(r"(\.<locals>\.<(?:genexpr|listcomp|setcomp|dictcomp)>)+$")


class Rounds:
    """Counts asks under each id, and ids made for each function, from 1 on in start order: the same on every replay."""

    def __init__(self) -> None:
        self._asks: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def made_id(self, qualified_name: str) -> str:
        """The next id made from the name of the function that asks."""
        name = _COMPREHENSION.sub("", qualified_name)[-_LONGEST_NAME:]
        self._names[name] += 1
        return f"pause:{name}:{self._names[name]}"

    def next(self, execution_id: str, approval_request_id: str) -> Key:
        """The key of the next ask under this id."""
        self._asks[approval_request_id] += 1
        return Key(execution_id, approval_request_id, self._asks[approval_request_id])

    @contextmanager
    def answered(self, key: Key) -> Iterator[None]:
        """While this round is asked; without an answer it is given back, so that trying again asks the same."""
        try:
            yield
        except BaseException:
            if self._asks[key.approval_request_id] == key.round:
                self._asks[key.approval_request_id] -= 1
            raise
