"""A process ends while its run waits; another one is given the run, finds the question and its answer, and goes on."""

from collections.abc import AsyncIterator

import pytest
from holdshort import Agent, ExecutionFinished
from holdshort.testing import ControlPlane

from sdk.python.tests.dispatching import Launcher, launching, listening
from sdk.python.tests.support import eventually


@pytest.fixture
async def launcher(plane: ControlPlane) -> AsyncIterator[Launcher]:
    async with launching(plane) as made:
        yield made


def drafting(plane: ControlPlane) -> Agent:
    """A new process of the same program."""
    agent = plane.connect(Agent("contract-reviewer", "1.0.0"))

    @agent.reasoner()
    async def draft() -> list[object]:
        seen: list[object] = []
        while True:
            result = await agent.pause("draft", payload=len(seen))
            seen.append([result.round, result.decision, result.feedback])
            if result.rejected or result.expired:
                with pytest.raises(ExecutionFinished):
                    await agent.pause("another")
                return [*seen, "cleaned up"]
            if not result.changes_requested:
                return seen

    return agent


@pytest.mark.parametrize("decision", ["approved", "rejected", "expired"])
async def test_what_was_decided_while_nobody_was_there(plane: ControlPlane, launcher: Launcher, decision: str) -> None:
    async with listening(drafting(plane)):
        await launcher.registered()
        run = await launcher.start("run-1", "draft")
        await plane.asked()
    assert (run.status, run.instance_id) == ("waiting", None)
    if decision == "expired":
        plane.advance(hours=100)
    else:
        plane.decide("draft", decision, "seen")
    async with listening(drafting(plane)):
        await launcher.registered()
        assert (await launcher.give("run-1")).status_code == 202
        await launcher.ended("run-1")
    feedback = "" if decision == "expired" else "seen"
    seen = [[1, decision, feedback]]
    if decision == "approved":
        assert (run.status, run.result) == ("succeeded", seen)
    else:
        assert (run.status, run.status_reason.partition(":")[0]) == ("cancelled", f"approval_{decision}")  # type: ignore[union-attr]
        assert run.result == [*seen, "cleaned up"]
    assert len(plane.approvals()) == 1


async def test_each_round_is_found_again(plane: ControlPlane, launcher: Launcher) -> None:
    for round_, decision in enumerate(["request_changes", "request_changes", "approved"], 1):
        async with listening(drafting(plane)):
            await launcher.registered()
            if round_ == 1:
                launcher.queue("run-1", "draft")
            await launcher.give("run-1")
            await eventually(lambda: any(each.round == round_ for each in plane.pending()))  # noqa: B023
        plane.decide("draft", decision, f"round {round_}")
    async with listening(drafting(plane)):
        await launcher.registered()
        await launcher.give("run-1")
        run = await launcher.ended("run-1")
    assert run.result == [
        [1, "request_changes", "round 1"],
        [2, "request_changes", "round 2"],
        [3, "approved", "round 3"],
    ]
    assert [(each.round, each.payload) for each in plane.approvals()] == [(1, 0), (2, 1), (3, 2)]
