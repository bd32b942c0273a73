"""An invariant: a promise, and the query for what breaks it."""

from typing import NamedTuple


class Invariant(NamedTuple):
    """A promise by its number, in words, and the query for what breaks it."""

    number: str
    promise: str
    broken: str
