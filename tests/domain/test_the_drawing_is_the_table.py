"""The page about the state machine is made from the table. To renew it, write `state_machine()` to the file."""

from pathlib import Path

import pytest

from controlplane.domain import runs
from controlplane.domain.approvals import TRANSITIONS
from controlplane.domain.cases import cancel
from controlplane.domain.drawing import state_machine
from controlplane.domain.executions import ExecutionStatus
from tests.factories import NOW, OPERATOR, held, instance, of

Status = ExecutionStatus

PAGE = Path(__file__).parents[2] / "docs" / "state-machine.md"


def test_the_page_is_what_the_table_draws():
    assert PAGE.read_text("utf-8") == state_machine()


def test_every_row_of_the_table_is_drawn():
    page = state_machine()
    for ending, transition in TRANSITIONS.items():
        assert f"| {ending} | {transition.to} |" in page
        assert f"pending --> {transition.to}" in page


def test_every_end_of_an_execution_is_drawn():
    assert [status for status in ExecutionStatus if status not in state_machine()] == []


MOVES = {
    "dispatch": (lambda: runs.dispatch(of(Status.QUEUED), instance()), Status.QUEUED),
    "undispatch": (lambda: runs.undispatch(held(Status.RUNNING)), Status.RUNNING),
    "prove": (lambda: runs.prove(held(Status.QUEUED)), Status.QUEUED),
    "release": (lambda: runs.release(held(Status.RUNNING), "handed_back"), Status.RUNNING),
    "give up what was queued": (lambda: runs.give_up(of(Status.QUEUED), "agent_unreachable"), Status.QUEUED),
    "give up what was sent": (lambda: runs.give_up(held(Status.RUNNING), "agent_refused"), Status.RUNNING),
    "out of time": (
        lambda: runs.run_out_of_time(held(Status.RUNNING, limit_seconds=0.0, running_since=NOW)),
        Status.RUNNING,
    ),
    "cancel": (lambda: cancel(of(Status.QUEUED), "stop", OPERATOR), Status.QUEUED),
}


@pytest.mark.parametrize("name", MOVES)
def test_every_way_in_and_out_of_an_instances_hands_is_drawn(name: str):
    make, before = MOVES[name]
    after = make().execution
    (arrow,) = [line for line in state_machine().splitlines() if line.startswith(f"    {before} --> {after.status}: ")][
        :1
    ]
    assert after.status is not before
    assert after.status_reason is None or after.status_reason in {*arrow.replace(",", "").split(), "stop"}
