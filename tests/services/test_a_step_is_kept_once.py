"""A step is kept once, whoever tells it how often, and only by whom the run was given to."""

import asyncio
import json
from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.errors import ExecutionNotFound, InvalidState, StaleInstance, StepMismatch
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus
from controlplane.storage import executions, steps
from tests.services.store import Rows, Store

POSITIONS = "SELECT position FROM steps WHERE execution_id = $1 ORDER BY position"
GIVE = """
UPDATE executions
SET status = $1, dispatched = true, fence = $2, fenced = $3, outcome_pending = $4, stalls = 9,
    ended_at = CASE WHEN $5 THEN clock_timestamp() END, running_since = CASE WHEN $6 THEN clock_timestamp() END
"""
MOMENTS = "SELECT updated_at FROM executions ORDER BY execution_id"
MARKS = "SELECT stalls, proven FROM executions"


async def give(
    store: Store,
    rows: Rows,
    status: ExecutionStatus = ExecutionStatus.RUNNING,
    *,
    fence: int = 3,
    fenced: bool = True,
    outcome_pending: bool = False,
) -> None:
    """Have a run in the hands of an instance, dispatched nine times without getting further."""
    await store.start()
    ended, works = status in FINAL_EXECUTION, status is ExecutionStatus.RUNNING
    await rows.sql.execute(GIVE, status, fence, fenced, outcome_pending, ended, works)


async def everything(rows: Rows) -> list[Any]:
    """What a refused step must leave as it is."""
    return [await rows.sql.fetch(f"SELECT * FROM {table}") for table in ("executions", "steps", "history")]


async def test_a_step_is_kept_whole_and_history_has_all_but_its_result(store: Store, rows: Rows):
    await store.start()
    step, new = await store.step("look up", b'{"secret":  1}', occurrence=2, previous="")
    assert new
    assert (step.name, step.occurrence, step.previous, step.result) == ("look up", 2, "", b'{"secret":  1}')
    assert step.position == 1
    assert step.at == await rows.value("SELECT at FROM steps")
    assert store.changes.wrote
    (fact,) = await rows.sql.fetch("SELECT * FROM history WHERE type = 'execution.step'")
    assert json.loads(fact["data"]) == {"name": "look up", "occurrence": 2, "position": 1}
    assert (fact["execution_id"], fact["node_id"], fact["actor_kind"], fact["actor_name"]) == (
        "run-1",
        "node-1",
        "agent",
        "node-1",
    )


async def test_the_same_step_told_at_once_is_written_once(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    async with rows.holding_run():
        tasks = await watcher.queue(*(store.step(previous="") for _ in range(3)))
    told = await asyncio.gather(*tasks)
    assert [new for _, new in told] == [True, False, False]
    assert [step for step, _ in told] == [told[0][0]] * 3
    assert (await rows.history()).count("execution.step") == 1


async def test_of_two_results_told_at_once_the_first_stands(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    async with rows.holding_run():
        tasks = await watcher.queue(store.step(result=b"null"), store.step(result=b"2"))
    told = await asyncio.gather(*tasks)
    assert [(step.result, new) for step, new in told] == [(b"null", True), (b"null", False)]
    assert await rows.column("SELECT CAST(result AS text) FROM steps") == ["null"]


async def test_steps_told_at_once_are_counted_without_a_gap_in_each_run(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    await store.start("run-2")
    async with rows.holding("SELECT 1 FROM executions ORDER BY execution_id FOR NO KEY UPDATE"):
        tasks = await watcher.queue(
            store.step("a"), store.step("a", execution_id="run-2"), store.step("b"), store.step("a", occurrence=2)
        )
    told = [step for step, _ in await asyncio.gather(*tasks)]
    assert {told[0].position, told[2].position, told[3].position} == {1, 2, 3}
    assert told[1].position == 1
    assert await rows.column(POSITIONS, "run-1") == [1, 2, 3]
    await store.step("b", execution_id="run-2")
    assert await rows.column(POSITIONS, "run-2") == [1, 2]
    async with store.tx() as conn:
        assert await steps.count(conn, ["run-2", "none", "run-1"]) == {"run-1": 3, "run-2": 2, "none": 0}


async def test_a_refused_step_takes_no_place(store: Store, rows: Rows):
    await store.start()
    await store.step("a", previous="")
    with pytest.raises(StepMismatch):
        await store.step("a", previous="b")
    assert (await store.step("b", previous="a"))[0].position == 2


@pytest.mark.parametrize(("kept", "told"), [("", None), (None, ""), ("a", "b"), ("a", "A")])
async def test_a_step_at_another_place_is_refused_with_its_own(
    store: Store, rows: Rows, kept: str | None, told: str | None
):
    await store.start()
    first, _ = await store.step(previous=kept)
    before = await everything(rows)
    with pytest.raises(StepMismatch) as refused:
        await store.step(previous=told, result=b"2")
    assert refused.value.extra == {"name": "a", "occurrence": 1, "previous": kept}
    assert await everything(rows) == before
    assert await store.step(previous=kept) == (first, False)


@pytest.mark.parametrize("fence", [2, 4, None])
async def test_another_dispatch_than_the_present_one_writes_nothing(store: Store, rows: Rows, fence: int | None):
    await give(store, rows)
    before = await everything(rows)
    with pytest.raises(StaleInstance) as refused:
        await store.step(fence=fence)
    assert refused.value.extra == {"fence": 3}
    assert await everything(rows) == before
    assert (await store.step(fence=3))[1]


async def test_a_step_that_waited_while_its_run_was_taken_over_is_refused(store: Store, rows: Rows, watcher: Rows):
    await give(store, rows)
    async with rows.holding("UPDATE executions SET fence = fence + 1"):
        (task,) = await watcher.queue(store.step(fence=3))
    with pytest.raises(StaleInstance):
        await task
    assert await rows.column("SELECT name FROM steps") == []


async def test_an_instance_that_knows_no_fences_keeps_steps_without_one(store: Store, rows: Rows):
    await give(store, rows, fenced=False)
    assert (await store.step())[1]
    with pytest.raises(StaleInstance):
        await store.step("b", fence=2)


async def test_a_run_that_its_own_program_started_keeps_steps_and_proves_nothing(store: Store, rows: Rows):
    await store.start()
    assert (await store.step())[1]
    assert (await store.step("b", fence=0))[1]
    with pytest.raises(StaleInstance):
        await store.step("c", fence=1)
    assert await rows.sql.fetch(MARKS) == [(0, False)]


@pytest.mark.parametrize("status", sorted(FINAL_EXECUTION))
async def test_a_run_that_is_over_keeps_no_further_step(store: Store, rows: Rows, status: ExecutionStatus):
    await give(store, rows, status)
    before = await everything(rows)
    with pytest.raises(InvalidState) as refused:
        await store.step(fence=3)
    assert refused.value.extra == {"execution_status": status, "status_reason": None}
    assert await everything(rows) == before


async def test_a_run_whose_code_has_yet_to_see_its_end_keeps_steps(store: Store, rows: Rows):
    await give(store, rows, ExecutionStatus.CANCELLED, outcome_pending=True)
    assert (await store.step("clean up", fence=3))[1]
    run = await store.run()
    assert (run.status, await rows.history()) == (
        ExecutionStatus.CANCELLED,
        ["execution.created", "execution.step"],
    )


async def test_a_queued_run_keeps_steps_once_it_was_given_to_an_instance_and_they_prove_that_it_runs(
    store: Store, rows: Rows
):
    await give(store, rows, ExecutionStatus.QUEUED, fence=0, fenced=False)
    with pytest.raises(InvalidState):
        await store.step()
    await rows.sql.execute("UPDATE executions SET fence = 1")
    assert (await store.step(fence=1))[1]
    assert (await store.run()).status is ExecutionStatus.RUNNING
    assert (await rows.history())[-2:] == ["execution.running", "execution.step"]


async def test_a_repeated_step_proves_that_the_run_runs_again(store: Store, rows: Rows):
    await give(store, rows)
    await store.step(fence=3)
    await rows.sql.execute(
        "UPDATE executions SET status = 'queued', running_since = NULL, fence = 4, proven = false, stalls = 2"
    )
    assert not (await store.step(fence=4))[1]
    assert (await store.run()).status is ExecutionStatus.RUNNING
    assert await rows.sql.fetch(MARKS) == [(2, True)]


async def test_a_waiting_run_keeps_steps(store: Store):
    await store.start()
    await store.ask()
    assert (await store.step())[1]
    assert (await store.run()).status is ExecutionStatus.WAITING


async def test_code_that_started_its_own_run_may_clean_up_after_a_rejection(store: Store):
    await store.start()
    asked = await store.ask()
    await store.decide(asked.approval_id, ApprovalStatus.REJECTED)
    assert (await store.step("clean up"))[1]
    await store.report(ExecutionStatus.SUCCEEDED)
    assert (await store.run()).status is ExecutionStatus.CANCELLED


async def test_a_deadline_that_a_refused_step_met_has_passed_all_the_same(store: Store, rows: Rows):
    await store.start()
    asked = await store.ask()
    await rows.pass_deadline(asked.approval_id)
    with pytest.raises(StaleInstance):
        await store.step(fence=7)
    assert (await store.look(asked.approval_id)).status is ApprovalStatus.EXPIRED
    assert (await store.run()).status is ExecutionStatus.CANCELLED
    assert await rows.column("SELECT name FROM steps") == []


async def test_a_new_step_is_progress_and_a_repeated_one_is_none(store: Store, rows: Rows):
    await give(store, rows)
    await store.step(fence=3)
    assert await rows.sql.fetch(MARKS) == [(0, True)]
    await rows.sql.execute("UPDATE executions SET stalls = 5")
    assert not (await store.step(fence=3))[1]
    assert await rows.value("SELECT stalls FROM executions") == 5


async def test_progress_is_that_of_one_run(store: Store, rows: Rows):
    await store.start("run-2")
    await give(store, rows)
    before = await rows.column(MOMENTS)
    async with store.tx() as conn:
        await executions.progressed(conn, "run-1")
    assert await rows.column("SELECT stalls FROM executions ORDER BY execution_id") == [0, 9]
    after = await rows.column(MOMENTS)
    assert after[0] > before[0]
    assert after[1] == before[1]


async def test_an_unknown_run_has_no_steps(store: Store):
    with pytest.raises(ExecutionNotFound):
        await store.step()


@pytest.mark.parametrize("first", ["step", "end"])
async def test_of_a_step_and_an_end_at_once_the_first_says_whether_it_is_kept(
    store: Store, rows: Rows, watcher: Rows, first: str
):
    await store.start()
    work = {"step": store.step(), "end": store.report(ExecutionStatus.SUCCEEDED)}
    async with rows.holding_run():
        tasks = await watcher.queue(work.pop(first), *work.values())
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, InvalidState) for each in outcomes] == [False, first == "end"]
    assert len(await rows.column("SELECT name FROM steps")) == (first == "step")
    assert (await store.run()).status is ExecutionStatus.SUCCEEDED
