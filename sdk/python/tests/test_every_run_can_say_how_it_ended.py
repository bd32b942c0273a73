"""A run whose result or whose words cannot be stored has failed; it does not stay running for ever."""

import asyncio
from typing import Any

import pytest
from holdshort import Agent, BadRequest, HandedBack
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.support import eventually

NO_JSON = [object(), "\udc80", {"a": object()}]


async def ending(agent: Agent, execution_id: str, result: Any, error: Exception | None) -> None:
    async with agent.execution(execution_id) as run:
        run.result = result
        if error:
            raise error


@pytest.mark.parametrize("result", NO_JSON)
async def test_what_is_no_json_fails_the_run(plane: ControlPlane, agent: Agent, result: Any) -> None:
    @agent.reasoner()
    async def returns() -> Any:
        return result

    with pytest.raises(RunFailed, match="Error"):
        await plane.call(agent, "returns", "run-1")
    with pytest.raises((TypeError, UnicodeError)):
        await ending(agent, "run-2", result, None)
    with pytest.raises(ZeroDivisionError):
        await ending(agent, "run-3", result, ZeroDivisionError())
    assert [plane.execution(f"run-{n}").status for n in (1, 2, 3)] == ["failed"] * 3


async def test_words_that_cannot_be_stored_are_replaced(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    async def fails() -> None:
        raise ValueError("\udc80\0" + "x" * 100_000)

    with pytest.raises(RunFailed, match="ValueError: \\?\\?xxx"):
        await plane.call(agent, "fails", "run-1")
    error = plane.execution("run-1").error
    assert error.startswith("ValueError: ??xxx")
    assert len(error) == 65_536


@pytest.mark.parametrize("error", [None, KeyError()])
async def test_a_result_that_is_refused_fails_the_run(plane: ControlPlane, error: Exception | None) -> None:
    class Picky:
        async def exchange(self, call: Call[Any]) -> Reply:
            if call.path.endswith("/status") and b"unwanted" in (call.body or b""):
                return Reply(400, {}, b'{"error": "bad_request", "message": "no"}')
            return await plane.transport.exchange(call)

        async def aclose(self) -> None:
            pass

    agent = Agent("n", "1")
    agent.use_transport(Picky())  # type: ignore[arg-type]
    with pytest.raises(BadRequest if error is None else KeyError):
        await ending(agent, "run-1", "unwanted", error)
    assert plane.execution("run-1").status == "failed"
    assert plane.execution("run-1").result is None


def grouped(agent: Agent) -> None:
    @agent.reasoner()
    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(agent.pause("a"))
            group.create_task(agent.pause("b"))


async def test_a_cancellation_reaches_out_of_a_task_group(plane: ControlPlane, agent: Agent) -> None:
    grouped(agent)
    running = asyncio.create_task(plane.call(agent, "both", "run-1"))
    await eventually(lambda: len(plane.pending()) == 2)
    plane.cancel("run-1", "no longer wanted")
    with pytest.raises(RunFailed, match="no longer wanted") as failure:
        await running
    assert failure.value.code == "execution_cancelled"


async def test_handing_back_reaches_out_of_a_task_group(plane: ControlPlane, agent: Agent) -> None:
    grouped(agent)
    running = asyncio.create_task(plane.call(agent, "both", "run-1"))
    await eventually(lambda: len(plane.pending()) == 2)
    agent.registry.hand_back()
    with pytest.raises(RunFailed) as failure:
        await running
    assert failure.value.code == HandedBack.code
    assert plane.execution("run-1").status == "waiting"


async def test_an_ordinary_group_is_a_failure(plane: ControlPlane, agent: Agent) -> None:
    with pytest.raises(ExceptionGroup):
        async with agent.execution("run-1"):
            raise ExceptionGroup("several", [ValueError(), KeyError()])
    assert plane.execution("run-1").status == "failed"
