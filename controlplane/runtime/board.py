"""The board: this process's picture of the short-lived questions that wait for people, and who watches it."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from controlplane.domain.feedback import FeedbackStatus, Question
from controlplane.runtime.happenings import Ear


class Asked(NamedTuple):
    """A question that waits from now on."""

    question: Question


class Resolved(NamedTuple):
    """A question that waits no longer, and how it ended."""

    unique_id: str
    outcome: FeedbackStatus


Change = Asked | Resolved


class Board:
    """What is pending, kept fresh by a worker; with it off, or the database away, it stands still.

    To watch it without a gap, begin to listen and then look, with nothing awaited between::

        with runtime.board.listening() as ear:
            shown = runtime.board.questions()
            changes = await ear.take(15.0)  # [] when the time has passed, None: look at `questions` anew
    """

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._questions: dict[str, Question] = {}
        self._ears: set[Ear[Change]] = set()

    def questions(self) -> list[Question]:
        """What is pending, oldest first."""
        return sorted(self._questions.values(), key=lambda each: (each.created_at, each.unique_id))

    def unique_ids(self) -> set[str]:
        """The ids of what is on it."""
        return set(self._questions)

    @contextmanager
    def listening(self) -> Iterator[Ear[Change]]:
        """Hear every change of the board from here to the end of a block."""
        ear = Ear[Change]()
        self._ears.add(ear)
        try:
            yield ear
        finally:
            self._ears.discard(ear)

    def add(self, asked: Iterable[Question]) -> None:
        """Put up questions that were found pending; those that hang there stay as they are."""
        new = [question for question in asked if question.unique_id not in self._questions]
        self._questions |= {question.unique_id: question for question in new}
        self._tell([Asked(question) for question in sorted(new, key=lambda each: each.created_at)])

    def remove(self, ended: Mapping[str, FeedbackStatus]) -> None:
        """Take down questions that ended; those that never hung there are passed over."""
        known = [unique_id for unique_id in ended if self._questions.pop(unique_id, None) is not None]
        self._tell([Resolved(unique_id, ended[unique_id]) for unique_id in known])

    def close(self) -> None:
        """Wake everyone who listens: the process is about to stop."""
        for ear in self._ears:
            ear.wake()

    def _tell(self, changes: list[Change] | list[Asked] | list[Resolved]) -> None:
        for ear in self._ears if changes else ():
            ear.hear(changes)
