import asyncio
from typing import Any

import pytest
from holdshort import Agent
from holdshort._callbacks import receive
from holdshort._core import Call, Reply, Unreachable
from holdshort.testing import ControlPlane
from holdshort.webhooks import sign

from sdk.python.tests.support import callback_body, eventually


class Between:
    """Runs something between the control plane's answer and the agent's reading of it."""

    def __init__(self, plane: ControlPlane, path: str, then: Any) -> None:
        self._plane = plane
        self._path = path
        self._then = then

    async def exchange(self, call: Call[Any]) -> Reply:
        reply = await self._plane.transport.exchange(call)
        if call.path.endswith(self._path):
            await self._then()
        return reply

    async def aclose(self) -> None:
        pass


async def test_a_callback_that_comes_before_the_answer_to_the_ask(plane: ControlPlane) -> None:
    agent = Agent("n", "1", callback_url="http://agent.test", callback="push")

    async def decided_and_told() -> None:
        approval = plane.pending()[0]
        plane.decide(approval, "approved", "at once")
        secret = plane._book.approvals[approval.approval_id].ask.callback_secret or ""
        body = callback_body(approval, "approved", "at once")
        headers = sign(secret, body, now=1, webhook_id="m")
        assert receive(agent.registry, headers, body) == (200, {"resolved": True})

    agent.use_transport(Between(plane, "request-approval", decided_and_told))  # type: ignore[arg-type]
    async with agent.execution("run-1"):
        assert (await agent.pause("x")).feedback == "at once"
    assert len(agent.registry) == 0


async def test_a_lost_answer_to_the_ask_asks_nothing_twice(plane: ControlPlane) -> None:
    lost: list[bool] = []

    async def lose() -> None:
        if not lost:
            lost.append(True)
            raise Unreachable("reset")

    agent = Agent("n", "1")
    agent.use_transport(Between(plane, "request-approval", lose))  # type: ignore[arg-type]
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("x"))
        approval = await plane.asked()
        await eventually(lambda: plane.calls.count("POST /api/v1/executions/run-1/request-approval") == 2)
        plane.decide(approval, "approved")
        assert (await waiting).approved
    assert len(plane.approvals()) == 1


@pytest.mark.parametrize("mode", ["auto", "pull"])
async def test_a_control_plane_that_is_away_is_not_noticed(plane: ControlPlane, mode: Any) -> None:
    agent = plane.connect(Agent("n", "1", callback=mode))
    async with agent.execution("run-1") as run:
        waiting = asyncio.create_task(agent.pause("x"))
        approval = await plane.asked()
        await eventually(lambda: "POST /api/v1/approvals/wait" in plane.calls)
        with plane.away():
            second = asyncio.create_task(agent.pause("y"))
            await eventually(lambda: len(agent.registry) == 2)
            plane.decide(approval, "approved")
        assert (await waiting).approved
        plane.decide(await plane.asked("y"), "approved")
        assert (await second).approved
        with plane.away():
            run.note("kept", ())
            await eventually(lambda: run._notes._teller is not None)
    assert plane.notes("run-1") == ["kept"]
    assert plane.execution("run-1").status == "succeeded"
