import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.programs import dying, restarted
from sdk.python.tests.support import eventually


async def until_asked(plane: ControlPlane, agent: Agent, reasoner: str) -> None:
    """Call it, and let its process die while it waits."""
    call = asyncio.create_task(plane.call(agent, reasoner, "run-1"))
    await plane.asked()
    await agent.asgi._calls.stop()
    with pytest.raises(RunFailed, match="stops"):
        await call


async def test_a_plain_reasoner_gets_its_results_back(plane: ControlPlane) -> None:
    done: list[tuple[str, bool]] = []

    def work(name: str) -> str:
        done.append((name, threading.current_thread() is threading.main_thread()))
        return name

    async def awaited(name: str) -> str:
        await asyncio.sleep(0)
        return work(name)

    def review_of(agent: Agent) -> None:
        @agent.reasoner()
        def review() -> list[str]:
            parts = [agent.step_sync("a", work, "1"), agent.step_sync("a", work, "2")]
            parts.append(agent.step_sync("b", awaited, "3"))
            agent.pause_sync("x")
            return [*parts, agent.step_sync("a", work, "4")]

    agent = restarted(plane)
    review_of(agent)
    await until_asked(plane, agent, "review")
    plane.decide("x", "approved")
    again = restarted(plane)
    review_of(again)
    assert await plane.call(again, "review", "run-1") == ["1", "2", "3", "4"]
    assert done == [("1", False), ("2", False), ("3", True), ("4", False)]
    previous = [str(step.previous).split("=")[0] for step in plane.steps("run-1")]
    assert previous == ["", "a#1", "a#2", "b#1"]


async def test_what_a_plain_step_raises_comes_out_and_is_tried_again(plane: ControlPlane, agent: Agent) -> None:
    tries: list[int] = []

    def work(number: int) -> int:
        tries.append(number)
        if len(tries) < 3:
            raise OSError(number)
        return number

    @agent.reasoner()
    def review() -> int:
        for _ in range(2):
            with pytest.raises(OSError, match="7"):
                agent.step_sync("a", work, 7)
        return agent.step_sync("a", work, 7)

    assert await plane.call(agent, "review", "run-1") == 7
    assert [(step.occurrence, str(step.previous)[0]) for step in plane.steps("run-1")] == [(1, "=")]


async def test_threads_that_async_code_starts_each_have_their_own_steps(plane: ControlPlane) -> None:
    done: list[str] = []

    def work(name: str) -> str:
        done.append(name)
        return name

    def branch(agent: Agent, name: str) -> list[str]:
        return [agent.step_sync(f"fetch {name}", work, f"{name}1"), agent.step_sync("parse", work, f"{name}2")]

    seen = []
    for each in (restarted(plane), restarted(plane)):
        async with dying(each):
            assert await each.step("first", work, "0") == "0"
            branches = [asyncio.to_thread(branch, each, name) for name in "abcd"]
            seen.append(await asyncio.gather(*branches))
            assert await each.step("last", work, "9") == "9"
    assert seen == [[[f"{name}1", f"{name}2"] for name in "abcd"]] * 2
    assert sorted(done) == sorted(["0", "9", *(f"{name}{n}" for name in "abcd" for n in (1, 2))])


async def test_threads_never_share_a_number(plane: ControlPlane, agent: Agent) -> None:
    barrier = threading.Barrier(16)

    def together(number: int) -> int:
        barrier.wait(5)
        return number

    def branch(number: int) -> int:
        barrier.wait(5)
        return agent.step_sync("same", together, number)

    async with agent.execution("run-1"):
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(16) as pool:
            branches = [loop.run_in_executor(pool, copy_context().run, branch, number) for number in range(16)]
            assert await asyncio.gather(*branches) == list(range(16))
    assert sorted(step.occurrence for step in plane.steps("run-1")) == list(range(1, 17))


async def test_a_thread_whose_run_is_over_gets_no_further(plane: ControlPlane, agent: Agent) -> None:
    held, ended = threading.Event(), []

    @agent.reasoner(timeout_seconds=0.05)
    def review() -> None:
        held.wait(5)
        try:
            agent.step_sync("late", str, "x")
        except BaseException as error:
            ended.append(error)
            raise

    with pytest.raises(RunFailed):
        await plane.call(agent, "review", "run-1")
    held.set()
    await eventually(lambda: ended)
    assert plane.steps("run-1") == []
