"""Dispatching: giving a run to an instance of its node until one has it."""

from enum import StrEnum


class DispatchKind(StrEnum):
    """What an agent is to be told: to run something, or that what it runs is over."""

    RUN = "run"
    CANCEL = "cancel"
