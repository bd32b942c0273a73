import asyncio
from typing import Any

import pytest
from holdshort import Agent, ExecutionFinished, RequestConflict, RoundNotOpen
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.support import eventually


def drafting(agent: Agent) -> list[str]:
    """Asks until it is approved; returns the feedback it saw."""
    seen: list[str] = []

    @agent.reasoner()
    async def draft() -> list[str]:
        while True:
            result = await agent.pause("draft", payload=len(seen))
            seen.append(result.feedback)
            if not result.changes_requested:
                return seen

    return seen


async def killed(running: "asyncio.Task[Any]", agent: Agent) -> None:
    """The process is gone: its tasks end, nothing is reported."""
    await agent.asgi._calls.stop()
    with pytest.raises(RunFailed) as stopped:
        await running
    assert stopped.value.code == "handed_back"
    with pytest.raises(RunFailed, match="stopping"):
        await ControlPlane().call(agent, "any")


def restarted(plane: ControlPlane) -> Agent:
    return plane.connect(Agent("contract-reviewer", "1.0.1"))


@pytest.mark.parametrize("decision", ["approved", "rejected"])
async def test_a_decision_made_while_the_agent_was_dead(plane: ControlPlane, agent: Agent, decision: str) -> None:
    drafting(agent)
    running = asyncio.create_task(plane.call(agent, "draft", "run-1"))
    await plane.asked()
    await killed(running, agent)
    assert plane.execution("run-1").status == "waiting"
    plane.decide("draft", decision, "seen")
    again = restarted(plane)
    drafting(again)
    assert await plane.call(again, "draft", "run-1") == ["seen"]
    assert len(plane.approvals()) == 1
    assert plane.execution("run-1").result == ["seen"]


async def test_a_replay_sees_the_feedback_of_round_1_and_opens_no_second_round_by_itself(
    plane: ControlPlane, agent: Agent
) -> None:
    drafting(agent)
    running = asyncio.create_task(plane.call(agent, "draft", "run-1"))
    await plane.asked()
    await killed(running, agent)
    plane.decide("draft", "request_changes", "shorter")
    again = restarted(plane)
    seen = drafting(again)
    running = asyncio.create_task(plane.call(again, "draft", "run-1"))
    second = await plane.asked()
    assert seen == ["shorter"]
    assert (second.round, second.payload) == (2, 1)
    plane.decide(second, "approved", "fine")
    assert await running == ["shorter", "fine"]


async def test_another_action_under_the_same_id_is_refused(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("pay", payload={"amount": 10}))
        plane.decide(await plane.asked(), "approved")
        await waiting
        plane._book.executions["run-1"].status = "running"
        again = restarted(plane)
        async with again.execution("run-1"):
            with pytest.raises(RequestConflict):
                await again.pause("pay", payload={"amount": 1000})


async def test_a_run_that_is_over_is_answered_as_it_ended(plane: ControlPlane, agent: Agent) -> None:
    calls = []

    @agent.reasoner()
    async def once(fail: bool = False) -> str:
        calls.append(fail)
        if fail:
            raise ValueError("broken")
        return "done"

    assert await plane.call(agent, "once", "run-1") == "done"
    assert await plane.call(agent, "once", "run-1") == "done"
    for _ in range(2):
        with pytest.raises(RunFailed, match="ValueError: broken"):
            await plane.call(agent, "once", "run-2", fail=True)
    assert calls == [False, True]
    with pytest.raises(ExecutionFinished):
        async with agent.execution("run-1"):
            pass


async def test_the_same_call_twice_is_one_run(plane: ControlPlane, agent: Agent) -> None:
    drafting(agent)
    both = [asyncio.create_task(plane.call(agent, "draft", "run-1")) for _ in range(2)]
    await plane.asked()
    plane.decide("draft", "approved", "x")
    assert await asyncio.gather(*both) == [["x"], ["x"]]
    assert plane.calls.count("POST /api/v1/executions") == 1


async def test_made_ids_are_the_same_on_every_replay(plane: ControlPlane) -> None:
    async def asked_ids() -> list[str]:
        agent = restarted(plane)

        async def inner() -> None:
            await agent.pause()

        @agent.reasoner()
        async def outer() -> None:
            await asyncio.gather(agent.pause(), agent.pause(), inner())

        running = asyncio.create_task(plane.call(agent, "outer", "run-1"))
        await eventually(lambda: len(plane.pending()) == 3)
        await killed(running, agent)
        return sorted(a.approval_request_id for a in plane.approvals())

    first = await asked_ids()
    assert first == await asked_ids()
    assert [made.rsplit(".", 1)[-1] for made in first] == ["inner:1", "outer:1", "outer:2"]


async def test_nothing_new_can_be_asked_after_a_rejection(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1") as run:
        waiting = asyncio.create_task(agent.pause("a"))
        plane.decide(await plane.asked(), "rejected", "no")
        assert (await waiting).rejected
        with pytest.raises(ExecutionFinished) as refused:
            await agent.pause("b")
        with pytest.raises(RoundNotOpen):
            await agent.pause("a")
        run.result = "cleaned up"
    assert refused.value.details["execution_status"] == "cancelled"
    assert plane.execution("run-1").status == run.status == "cancelled"
    assert plane.execution("run-1").result == "cleaned up"


async def test_after_a_deadline_with_resume_the_run_may_ask_again(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("a", expires_in_hours=0.5, on_expiry="resume"))
        await plane.asked()
        plane.advance(hours=0.5)
        assert (await waiting).expired
        again = asyncio.create_task(agent.pause("a", on_expiry="resume"))
        plane.decide(await plane.asked(), "approved")
        assert (await again).approved


async def test_ends_are_reported_and_stops_are_not(plane: ControlPlane, agent: Agent) -> None:
    with pytest.raises(ZeroDivisionError):
        async with agent.execution("failed"):
            raise ZeroDivisionError("by zero")
    assert plane.execution("failed").status == "failed"
    assert plane.execution("failed").error == "ZeroDivisionError: by zero"

    async def cancelled() -> None:
        async with agent.execution("stopped"):
            await agent.pause("x")

    task = asyncio.create_task(cancelled())
    await plane.asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert plane.execution("stopped").status == "waiting"
    with pytest.raises(KeyboardInterrupt):
        async with agent.execution("interrupted"):
            raise KeyboardInterrupt
    assert plane.execution("interrupted").status == "running"
    with pytest.raises(asyncio.CancelledError):
        async with agent.execution("own-fault"):
            raise asyncio.CancelledError
    assert plane.execution("own-fault").status == "failed"
