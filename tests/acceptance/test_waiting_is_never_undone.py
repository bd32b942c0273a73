"""Runs that pause at once, of an agent whose word that it runs comes after its question."""

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.desk import Desk
from tests.acceptance.peers import Peer
from tests.acceptance.recorder import Call, recorder
from tests.durability.plane import Plane, free_port, until
from tests.figures import Figures

EVENTS = "/api/v1/workflow/executions/events"


@pytest.mark.parametrize(
    "runs",
    [
        pytest.param(40, id="quick", marks=pytest.mark.timeout(300)),
        pytest.param(1_000, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_a_late_word_of_running_takes_no_run_out_of_its_pause(
    peer_python: Path, plane: Plane, desk: Desk, tmp_path: Path, figures: Figures, runs: int
):
    async with recorder(plane.url, free_port()) as between:
        agent = Peer(peer_python, between.url, tmp_path, f"crowd-{runs}")
        try:
            await asyncio.to_thread(agent.start)
            ids = [f"one-of-{runs}-{number}" for number in range(runs)]
            started = [await desk.start(f"{agent.node_id}.once", request_id=each) for each in ids]
            await until(lambda: told(between.calls, started, "running"), seconds=240, every=0.25)
            states = [await desk.look(run) for run in started]
            assert {(run["status"], run["pending_approvals"]) for run in states} == {("waiting", 1)}
            for run, request_id in zip(started, ids, strict=True):
                await desk.decide(run, request_id)
            over = [await desk.until_over(run, seconds=240) for run in started]
            assert {run["status"] for run in over} == {"succeeded"}
            await until(lambda: told(between.calls, started, "succeeded"), seconds=240, every=0.25)
        finally:
            await asyncio.to_thread(agent.close)
    late = sum(is_late(between.calls, run) for run in started)
    figures("older agents that pause at once", runs=runs, told_that_it_runs_after_it_asked=late, lost_pauses=0)
    assert late > runs / 2, "the race that this is about did not happen"


async def told(calls: list[Call], runs: list[str], status: str) -> bool:
    """Whether the control plane has answered that event of every run, and every run has asked."""
    said = {call.body["execution_id"] for call in calls if call.path == EVENTS and call.body["status"] == status}
    asked = {call.path.split("/")[6] for call in calls if call.path.endswith("/request-approval")}
    return said >= set(runs) and asked >= set(runs)


def is_late(calls: list[Call], run: str) -> bool:
    """Whether the word that a run runs was answered after its question."""
    mine = [call for call in calls if run in call.path or (call.path == EVENTS and call.body["execution_id"] == run)]
    asked = next(place for place, call in enumerate(mine) if call.path.endswith("/request-approval"))
    runs = next(place for place, call in enumerate(mine) if call.path == EVENTS)
    return runs > asked
