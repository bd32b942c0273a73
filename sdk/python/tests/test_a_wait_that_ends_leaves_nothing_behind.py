"""A pause that ends early, however it ends, takes nothing from other waits and leaves nothing in the process."""

import asyncio

import pytest
from holdshort import Agent, ConnectionFailed
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.support import eventually


async def test_one_waiter_that_leaves_does_not_silence_the_other(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("x"))
        await plane.asked()
        with pytest.raises(TimeoutError):
            await agent.wait_for_resume("x", timeout=0.01)
        other = asyncio.create_task(agent.pause("re-arms the call"))
        await plane.asked("re-arms the call")
        plane.decide("re-arms the call", "approved")
        await other
        plane.decide("x", "approved")
        async with asyncio.timeout(5):
            assert (await waiting).approved


async def test_a_pause_that_the_caller_gave_up_is_asked_again_as_the_same_round(
    plane: ControlPlane, agent: Agent
) -> None:
    async with agent.execution("run-1"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await agent.pause("x", payload=1)
        assert len(agent.registry) == 0
        again = asyncio.create_task(agent.pause("x", payload=1))
        plane.decide(await plane.asked(), "approved")
        assert (await again).round == 1
    assert len(plane.approvals()) == 1


async def test_giving_up_before_the_pause_began_is_no_ask(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        asking = asyncio.create_task(agent.pause("x"))
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
    assert plane.approvals() == []
    assert len(agent.registry) == 0


async def test_a_pause_that_was_never_asked_is_asked_when_tried_again(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        with plane.away(), pytest.raises(ConnectionFailed):
            await agent.pause("x", timeout=0.05)
        again = asyncio.create_task(agent.pause("x"))
        plane.decide(await plane.asked(), "approved")
        assert (await again).round == 1


async def test_a_run_that_failed_beside_its_pauses_ends_them_too(plane: ControlPlane) -> None:
    # What a run leaves open when it ends is not pushed, so here nothing else could end the wait.
    agent = plane.connect(Agent("n", "1", callback_url="http://agent.test", callback="push"))
    left: list[asyncio.Task[object]] = []

    @agent.reasoner()
    async def broken() -> None:
        async def fails() -> None:
            await plane.asked("x")
            raise ValueError("broken")

        left.append(asyncio.create_task(agent.pause("x")))
        await asyncio.gather(left[0], fails())

    with pytest.raises(RunFailed, match="ValueError: broken"):
        await plane.call(agent, "broken", "run-1")
    assert plane.execution("run-1").status == "failed"
    await eventually(left[0].done)
    assert len(agent.registry) == 0


async def test_looking_up_keeps_to_the_callers_time_without_the_control_plane(
    plane: ControlPlane, agent: Agent
) -> None:
    with plane.away():
        async with asyncio.timeout(5):
            for named in (None, "run-1"):
                with pytest.raises(ConnectionFailed):
                    await agent.wait_for_resume("x", execution_id=named, timeout=0.05)
