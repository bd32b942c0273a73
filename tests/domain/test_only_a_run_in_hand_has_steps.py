from typing import Any

import pytest
from msgspec.structs import replace

from controlplane.domain.errors import InvalidState, StepMismatch, StepTooLarge
from controlplane.domain.executions import FINAL_EXECUTION, Execution, ExecutionStatus
from controlplane.domain.steps import MAX_RESULT, Done, Step, check_open, check_place, check_size
from tests.factories import NOW, case

STEP = Step(name="s", occurrence=2, previous="a#1", result=b"1", position=3, at=NOW)


def execution(status: ExecutionStatus, **changes: Any) -> Execution:
    return replace(case(status=status).execution, **changes)


def takes_steps(run: Execution) -> bool:
    try:
        check_open(run)
    except InvalidState:
        return False
    return True


def test_a_run_takes_steps_from_its_first_dispatch_to_its_end():
    taking = {
        (status, fence)
        for status in ExecutionStatus
        for fence in (0, 1)
        if takes_steps(execution(status, fence=fence, dispatched=True))
    }
    running, waiting = ExecutionStatus.RUNNING, ExecutionStatus.WAITING
    assert taking == {(running, 0), (running, 1), (waiting, 0), (waiting, 1), (ExecutionStatus.QUEUED, 1)}


def test_an_end_that_the_code_has_not_seen_yet_takes_steps():
    for status in FINAL_EXECUTION:
        assert not takes_steps(execution(status, fence=1, dispatched=True))
        assert takes_steps(execution(status, fence=1, dispatched=True, outcome_pending=True))


@pytest.mark.parametrize("previous", [None, "", "a", "a#2"])
def test_a_step_stands_where_it_was_kept(previous: str | None):
    done = Done(name="s", occurrence=2, previous=previous, result=b"2")
    with pytest.raises(StepMismatch) as refused:
        check_place(STEP, done)
    assert refused.value.extra == {"name": "s", "occurrence": 2, "previous": "a#1"}
    check_place(STEP, replace(done, previous="a#1"))


def test_a_result_has_a_mebibyte_at_most():
    assert check_size(b"1" * MAX_RESULT) == b"1" * MAX_RESULT
    with pytest.raises(StepTooLarge) as refused:
        check_size(b"1" * (MAX_RESULT + 1))
    assert refused.value.extra == {"limit_bytes": MAX_RESULT}
