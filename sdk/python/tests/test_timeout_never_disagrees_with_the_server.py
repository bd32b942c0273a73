import asyncio
from typing import Any

import pytest
from holdshort import Agent, AmbiguousRequestId, Approval, ConnectionFailed, NotFound, WaitTimeout
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane

from sdk.python.tests.support import eventually


async def test_the_question_expires_on_the_server(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        result = await agent.pause("x", timeout=0.01)
        assert result.expired
        assert plane.approvals()[0].status == "expired"
        assert plane.execution("run-1").status == "cancelled"


async def test_an_answer_at_the_last_moment_stands(plane: ControlPlane) -> None:
    class LastMoment:
        async def exchange(self, call: Call[Any]) -> Reply:
            if call.path.endswith("/expire"):
                plane.decide("x", "approved", "just in time")
            if call.path.endswith("/wait"):
                await asyncio.Event().wait()
            return await plane.transport.exchange(call)

        async def aclose(self) -> None:
            pass

    agent = Agent("n", "1")
    agent.use_transport(LastMoment())  # type: ignore[arg-type]
    async with agent.execution("run-1"):
        result = await agent.pause("x", timeout=0.01)
    assert (result.approved, result.feedback) == (True, "just in time")


async def test_without_the_control_plane_nothing_is_decided(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        with plane.away(), pytest.raises(ConnectionFailed):
            await agent.pause("x", timeout=0.05)


async def test_waiting_again_after_a_wait_timeout(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("x"))
        await plane.asked()
        with pytest.raises(TimeoutError) as late:
            await agent.wait_for_resume("x", timeout=0.01)
        assert isinstance(late.value, WaitTimeout)
        assert plane.pending()
        again = asyncio.create_task(agent.wait_for_resume("x", execution_id="run-1"))
        plane.decide("x", "approved", "both")
        assert (await again).feedback == (await waiting).feedback == "both"


async def test_a_decision_made_while_the_agent_was_down_is_returned_at_once(plane: ControlPlane, agent: Agent) -> None:
    task = asyncio.create_task(ask_only(agent, "run-1"))
    await plane.asked()
    task.cancel()
    plane.decide("x", "approved", "meanwhile")
    again = plane.connect(Agent("contract-reviewer", "2"))
    assert (await again.wait_for_resume("x")).feedback == "meanwhile"
    assert (await again.wait_for_resume("x", execution_id="run-1")).feedback == "meanwhile"


async def test_a_pending_question_gets_the_new_address(plane: ControlPlane, agent: Agent) -> None:
    task = asyncio.create_task(ask_only(agent, "run-1"))
    approval = await plane.asked()
    task.cancel()
    again = plane.connect(Agent("contract-reviewer", "2", callback_url="http://agent.test/base/"))
    waiting = asyncio.create_task(again.wait_for_resume("x"))
    asked = plane._book.approvals[approval.approval_id].ask
    await eventually(lambda: asked.callback_url)
    assert asked.callback_url == "http://agent.test/base/webhooks/approval"
    plane.decide("x", "approved")
    assert (await waiting).approved


async def test_which_question_is_meant_is_never_guessed(plane: ControlPlane, agent: Agent) -> None:
    with pytest.raises(NotFound):
        await agent.wait_for_resume("x")
    tasks = [asyncio.create_task(ask_only(agent, f"run-{n}")) for n in (1, 2)]
    await eventually(lambda: len(plane.pending()) == 2)
    with pytest.raises(AmbiguousRequestId) as several:
        await agent.wait_for_resume("x")
    assert [each["execution_id"] for each in several.value.details["approvals"]] == ["run-2", "run-1"]
    plane.decide(plane.approvals()[0], "approved")
    waiting = asyncio.create_task(agent.wait_for_resume("x"))
    await asyncio.gather(*tasks[:1], return_exceptions=True)
    plane.decide(plane.approvals()[1], "approved", "the pending one")
    assert (await waiting).feedback == "the pending one"
    await asyncio.gather(*tasks)
    with pytest.raises(AmbiguousRequestId):
        await agent.wait_for_resume("x")


async def test_one_that_waits_is_found_among_any_number_that_are_over(plane: ControlPlane, agent: Agent) -> None:
    waiting = asyncio.create_task(ask_only(agent, "first"))
    await plane.asked()
    for n in range(201):
        over = asyncio.create_task(ask_only(agent, f"run-{n}"))
        plane.decide(await newest(plane, f"run-{n}"), "approved")
        await over
    before = len(plane.calls)
    found = asyncio.create_task(agent.wait_for_resume("x"))
    await eventually(lambda: len(plane.calls) > before)
    plane.decide("x", "approved", "the first")
    assert (await found).feedback == "the first"
    await waiting
    with pytest.raises(AmbiguousRequestId) as several:
        await agent.wait_for_resume("x")
    assert len(several.value.details["approvals"]) > 1
    assert [call for call in plane.calls[before:] if call == "GET /api/v1/approvals"] == ["GET /api/v1/approvals"] * 3


async def newest(plane: ControlPlane, execution_id: str) -> Approval:
    await eventually(lambda: plane.pending()[-1].execution_id == execution_id)
    return plane.pending()[-1]


async def ask_only(agent: Agent, execution_id: str) -> None:
    async with agent.execution(execution_id):
        await agent.pause("x")
