"""What an open page is told beside what was asked and what ended."""

from msgspec import Struct


class Counts(Struct, frozen=True, omit_defaults=True):
    """How many approvals and how many short-lived questions wait for a person; None where that is not said."""

    waiting: int | None = None
    feedback: int | None = None
