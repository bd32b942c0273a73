"""The page about the state machine is made from the table. To renew it, write `state_machine()` to the file."""

from pathlib import Path

from controlplane.domain.approvals import TRANSITIONS
from controlplane.domain.drawing import state_machine
from controlplane.domain.executions import ExecutionStatus

PAGE = Path(__file__).parents[2] / "docs" / "state-machine.md"


def test_the_page_is_what_the_table_draws():
    assert PAGE.read_text("utf-8") == state_machine()


def test_every_row_of_the_table_is_drawn():
    page = state_machine()
    for ending, transition in TRANSITIONS.items():
        assert f"| {ending} | {transition.to} |" in page
        assert f"pending --> {transition.to}" in page


def test_every_end_of_an_execution_is_drawn():
    assert [status for status in ExecutionStatus if status not in state_machine()] == [ExecutionStatus.QUEUED]
