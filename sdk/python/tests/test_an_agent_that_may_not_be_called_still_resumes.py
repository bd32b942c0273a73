"""Where the control plane calls nobody at the agent's address, "auto" waits by the held call; "push" says so."""

import asyncio
import json
from typing import Any

import pytest
from holdshort import Agent, InvalidField
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane

from sdk.python.tests.support import eventually

PROBLEM = {"error": "callback_url_refused", "message": "callback_url: lies in a private network"}


class Choosy:
    """The testing control plane, calling nobody: an address is refused wherever one is sent."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.refused = 0

    async def exchange(self, call: Call[Any]) -> Reply:
        if call.body is not None and json.loads(call.body).get("callback_url"):
            self.refused += 1
            return Reply(422, {}, json.dumps(PROBLEM).encode())
        return await self._plane.transport.exchange(call)

    async def aclose(self) -> None:
        pass


def agent_of(choosy: Choosy, callback: Any) -> Agent:
    agent = Agent("n", "1", callback_url="http://10.0.0.1", callback=callback)
    agent.use_transport(choosy)  # type: ignore[arg-type]
    return agent


async def test_auto_waits_by_the_held_call(plane: ControlPlane) -> None:
    choosy = Choosy(plane)
    agent = agent_of(choosy, "auto")
    async with agent.execution("run-1"):
        pausing = asyncio.create_task(agent.pause("q"))
        await eventually(plane.pending)
        plane.decide(plane.pending()[0], "approved")
        assert (await pausing).approved
    assert choosy.refused == 1


async def test_push_says_that_it_cannot_be_called(plane: ControlPlane) -> None:
    agent = agent_of(Choosy(plane), "push")
    with pytest.raises(InvalidField, match="private network"):
        async with agent.execution("run-1"):
            await agent.pause("q")


async def test_waiting_again_for_a_question_of_before_needs_no_address(plane: ControlPlane) -> None:
    choosy = Choosy(plane)
    agent = agent_of(choosy, "auto")
    async with agent.execution("run-1"):
        first = asyncio.create_task(agent.pause("q"))
        await eventually(plane.pending)
        again = asyncio.create_task(agent.wait_for_resume("q", execution_id="run-1"))
        await eventually(lambda: choosy.refused == 2)
        plane.decide(plane.pending()[0], "approved")
        assert (await first).approved
        assert (await again).approved
