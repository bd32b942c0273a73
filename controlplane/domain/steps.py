"""Steps: what a run did, each kept once with its result, so that the run started again does it no second time."""

from datetime import datetime

from msgspec import Struct

from controlplane.domain.errors import InvalidState, StepMismatch, StepTooLarge
from controlplane.domain.executions import Execution

MAX_RESULT = 1024 * 1024
MAX_NAME = 200
MAX_PREVIOUS = 256


class Done(Struct, frozen=True, kw_only=True):
    """A step as its agent tells it: the how-many-eth under its name, after which other one, and its JSON as received.

    `previous` is the agent's word for the step before it ("" for the first, None where there is no order): the same
    run must do the same step at the same place again, or its results would be given to other code.
    """

    name: str
    occurrence: int
    previous: str | None
    result: bytes


class Step(Done, frozen=True, kw_only=True):
    """A step as it is kept; `position` counts the steps of its run from 1, without a gap."""

    position: int
    at: datetime


def check_size(result: bytes) -> bytes:
    """Return a step's result unchanged, or raise `StepTooLarge`."""
    if len(result) > MAX_RESULT:
        raise StepTooLarge(limit_bytes=MAX_RESULT)
    return result


def check_open(execution: Execution) -> None:
    """Refuse steps of a run that nobody does: it is over and its code has seen that, or no agent was given it yet.

    Raises:
        InvalidState: no step can be kept.
    """
    if not execution.code_goes_on:
        raise InvalidState(
            f"The execution is {execution.status} ({execution.status_reason or 'no reason kept'}), so no step can be "
            "kept; start a new execution.",
            execution_status=execution.status,
            status_reason=execution.status_reason,
        )


def check_place(kept: Step, done: Done) -> None:
    """Refuse a step that was kept at another place of its run.

    Raises:
        StepMismatch: another step came before it when it was kept.
    """
    if kept.previous != done.previous:
        raise StepMismatch(name=kept.name, occurrence=kept.occurrence, previous=kept.previous)
