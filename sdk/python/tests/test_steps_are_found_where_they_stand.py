"""Whatever the order in which tasks get along, a restarted run's calls each find their own stored result."""

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from contextvars import copy_context
from random import Random
from typing import Any

import pytest
import uvloop
from holdshort import Agent
from holdshort.testing import ControlPlane

from sdk.python.tests.programs import RUN, Attempt, Killed, calls, dying, program, restarted


def lived_through(seed: int, new_loop: Callable[[], asyncio.AbstractEventLoop] | None = None) -> int:
    """Run a random program, killing it at random steps until it ends; returns how many steps it stored."""
    rng = Random(seed)
    plane, ops = ControlPlane(), program(rng)
    wanted = calls(ops)
    stored: Counter[str] = Counter()
    for _ in range(12):
        at = rng.choice((None, *range(1, 12)))
        attempt = Attempt(plane, rng, Killed(plane, at, stored=rng.random() < 0.5))
        ended = attempt.run(ops, new_loop)
        assert attempt.wrong == []
        assert attempt.done <= wanted - stored
        stored = Counter(step.result["site"] for step in plane.steps(RUN))
        if ended:
            break
    return len(plane.steps(RUN))


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_random_programs(first: int) -> None:
    assert sum(lived_through(seed) for seed in range(first, first + 50)) > 500


def test_random_programs_on_another_loop() -> None:
    assert sum(lived_through(seed, uvloop.new_event_loop) for seed in range(200, 230)) > 300


@pytest.mark.skipif(sys.version_info < (3, 12), reason="tasks begin at once from Python 3.12 on")
def test_random_programs_whose_tasks_begin_at_once() -> None:
    def new_loop() -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()
        loop.set_task_factory(vars(asyncio)["eager_task_factory"])
        return loop

    assert sum(lived_through(seed, new_loop) for seed in range(300, 330)) > 300


@pytest.mark.proof
@pytest.mark.timeout(900)
def test_many_random_programs() -> None:
    assert sum(lived_through(seed) for seed in range(1000, 6000)) > 50_000


async def numbered(agent: Agent, number: int) -> int:
    async def work(number: int) -> int:
        return number

    await asyncio.sleep(0)
    return await agent.step("a", work, number)


@pytest.mark.parametrize("takes_context", [True, False])
async def test_a_loops_own_task_factory_goes_on_making_its_tasks(
    plane: ControlPlane, agent: Agent, takes_context: bool
) -> None:
    made: list[Any] = []

    def plain(loop: asyncio.AbstractEventLoop, coro: Any) -> "asyncio.Task[Any]":
        made.append(coro)
        return asyncio.Task(coro, loop=loop)

    def modern(loop: asyncio.AbstractEventLoop, coro: Any, **known: Any) -> "asyncio.Task[Any]":
        made.append(coro)
        return asyncio.Task(coro, loop=loop, **known)

    loop = asyncio.get_running_loop()
    factory = modern if takes_context else plain
    loop.set_task_factory(factory)
    try:
        for each in (agent, restarted(plane)):
            async with dying(each, "run-2"):
                assert await asyncio.gather(*(numbered(each, n) for n in range(5))) == [0, 1, 2, 3, 4]
        assert loop.get_task_factory() is factory
    finally:
        loop.set_task_factory(None)
    assert sum(coro.__qualname__ == "numbered" for coro in made) == 10
    assert len(plane.steps("run-2")) == 5


async def test_runs_beside_each_other_take_their_task_factory_away_with_the_last(
    plane: ControlPlane, agent: Agent
) -> None:
    loop = asyncio.get_running_loop()
    first_over = asyncio.Event()

    async def short() -> None:
        async with agent.execution("short"):
            assert await asyncio.gather(numbered(agent, 1), numbered(agent, 2)) == [1, 2]
        first_over.set()

    async with agent.execution("long"):
        outside = asyncio.create_task(short())
        await first_over.wait()
        assert await asyncio.gather(numbered(agent, 3), numbered(agent, 4)) == [3, 4]
        assert loop.get_task_factory() is not None
        await outside
    assert loop.get_task_factory() is None
    places = [str(step.previous).split("=")[0] for run in ("short", "long") for step in plane.steps(run)]
    assert places == ["/&numbered/1", "/&numbered/2"] * 2


async def test_a_factory_that_came_on_top_stays(agent: Agent) -> None:
    loop = asyncio.get_running_loop()
    try:
        async with agent.execution():
            below: Any = loop.get_task_factory()

            def on_top(loop: asyncio.AbstractEventLoop, coro: Any, **known: Any) -> Any:
                return below(loop, coro, **known)

            loop.set_task_factory(on_top)
            async with agent.execution():
                assert await asyncio.gather(numbered(agent, 1), numbered(agent, 2)) == [1, 2]
        assert loop.get_task_factory() is on_top
        assert await asyncio.create_task(asyncio.sleep(0, 3)) == 3
    finally:
        loop.set_task_factory(None)


async def test_a_task_in_a_context_of_its_own_does_steps_too(plane: ControlPlane, agent: Agent) -> None:
    for each in (agent, restarted(plane)):
        async with dying(each):
            shared = copy_context()
            loop = asyncio.get_running_loop()
            tasks = [loop.create_task(each.step("a", str, n), context=shared) for n in (1, 2)]
            assert [await task for task in tasks] == ["1", "2"]
    assert len(plane.steps(RUN)) == 2


async def test_a_run_inside_a_run_has_its_own_steps(plane: ControlPlane, agent: Agent) -> None:
    other = plane.connect(Agent("other", "1"))
    for each in (agent, restarted(plane)):
        async with dying(each):
            assert await each.step("a", str, 1) == "1"
            async with dying(other, "inner"):
                assert await other.step("a", str, 2) == "2"
            assert await asyncio.gather(*(each.step("c", str, n) for n in (4, 5))) == ["4", "5"]
            assert await each.step("d", str, 6) == "6"
    places = [(step.name, str(step.previous).split("=")[0]) for step in plane.steps(RUN)]
    assert places == [("a", ""), ("c", "a#1/c/1"), ("c", "a#1/c/2"), ("d", "a#1")]
    assert [step.name for step in plane.steps("inner")] == ["a"]
