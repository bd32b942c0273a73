"""Steps of real agents on the real control plane: each is done once, whichever processes the run goes through."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from holdshort import Agent, AsyncClient, StepMismatch, Verdict

from controlplane.cli.demo.programs import Program, free_port
from tests.contract.planes import Plane, asked, registered, until

AN_AGENT = Path(__file__).with_name("an_agent.py")
MIB = 1024 * 1024
Name = Callable[[str], str]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def start(plane: Plane, fresh: Name, port: int) -> Iterator[Callable[[], Program]]:
    """Starts a process of the node, at the address of the one before."""
    started: list[Program] = []

    def run() -> Program:
        environ = {"HOLDSHORT_URL": plane.url, "NODE": fresh("node"), "CALLBACK": "auto"}
        at = f"http://127.0.0.1:{port}/health"
        program = Program("the agent", [str(AN_AGENT), str(port)], environ, health=at)
        program.start()
        started.append(program)
        program.wait_until_ready()
        return program

    yield run
    for program in started:
        program.kill()


def again(plane: Plane, fresh: Name) -> Agent:
    """The agent, in a process of its own as far as the control plane can tell."""
    return Agent(fresh("node"), "1", control_plane_url=plane.url)


@asynccontextmanager
async def dying(agent: Agent, run: str) -> AsyncIterator[Agent]:
    """A run whose process ends with the block: nothing is reported."""
    with suppress(KeyboardInterrupt):
        async with agent.execution(run):
            yield agent
            raise KeyboardInterrupt


async def test_a_run_that_is_killed_twice_does_each_step_once(
    start: Callable[[], Program], client: AsyncClient, fresh: Name, tmp_path: Path
):
    begun, may_end = tmp_path / "begun", tmp_path / "may end"
    first = start()
    await registered(client, fresh("node"), "prepare")
    given = {"begun": str(begun), "may_end": str(may_end), "request_id": fresh("q")}
    run = (await client.execute_async(fresh("node"), "prepare", given)).execution_id
    await until(lambda: asyncio.to_thread(begun.exists), bool)
    first.kill()
    second = start()
    await until(lambda: asyncio.to_thread(begun.read_text), lambda said: said.count("\n") == 2)
    may_end.touch()
    (question,) = await asked(client, fresh("q"))
    second.kill()
    third = start()
    await client.decide(question.approval_id, Verdict(decision="approved"))
    found = await until(lambda: client.get_execution(run), lambda found: found.final)
    assert (found.status, found.fence) == ("succeeded", 3)
    assert found.result == [*[first.pid] * 4, second.pid, third.pid]
    assert len((await client.list_steps(run)).steps) == 6


async def test_results_of_any_size_and_name_come_back(plane: Plane, client: AsyncClient, fresh: Name):
    names = ["x" * 200, "\u00fc/#1!=%", "  ", "a"]
    done: list[int] = []

    def work(number: int, size: int) -> str:
        done.append(number)
        return str(number % 10) * (size - 2)

    async def deeper(agent: Agent, depth: int) -> str:
        """Tasks in tasks, until the place has a name that is too long to be kept as it is."""
        if depth:
            return await asyncio.create_task(deeper(agent, depth - 1))
        return await agent.step("deep", work, 99, 4)

    async def everything(agent: Agent) -> list[str]:
        results = [await agent.step(name, work, number, MIB) for number, name in enumerate(names * 2)]
        small = (agent.step("small", work, 100 + number, 4) for number in range(210))
        return [*results, await deeper(agent, 30), *await asyncio.gather(*small)]

    async with dying(again(plane, fresh), fresh("run")) as agent:
        await everything(agent)
    agent = again(plane, fresh)
    async with agent.execution(fresh("run")):
        results = await everything(agent)
    assert [len(each) for each in results] == [MIB - 2] * 8 + [2] * 211
    assert len(done) == 219
    steps, after = [], None
    while not steps or after is not None:
        page = await client.list_steps(fresh("run"), after=after)
        steps += page.steps
        after = page.next_after
    assert len(steps) == 219
    assert max(len(step.previous or "") for step in steps) <= 256


async def test_changed_code_ends_its_run_as_failed(plane: Plane, client: AsyncClient, fresh: Name):
    async def changed(agent: Agent) -> None:
        async with agent.execution(fresh("run")):
            await agent.step("read", str, 1)
            await agent.step("check", str, 3)

    async with dying(again(plane, fresh), fresh("run")) as agent:
        await agent.step("read", str, 1)
        await agent.step("send", str, 2)
    with pytest.raises(StepMismatch, match="'send'"):
        await changed(again(plane, fresh))
    found = await client.get_execution(fresh("run"))
    assert (found.status, found.status_reason) == ("failed", "step_mismatch")
    assert "'check'" in str(found.error)
    assert "'send'" in str(found.error)


async def test_a_control_plane_killed_under_a_step_is_not_noticed(mortal_plane: Plane, fresh: Name):
    done: list[int] = []

    async def work(number: int) -> int:
        mortal_plane.kill()
        starting.append(asyncio.create_task(asyncio.to_thread(mortal_plane.start)))
        done.append(number)
        return number

    starting: list[asyncio.Task[None]] = []
    agent = again(mortal_plane, fresh)
    async with agent.execution(fresh("run")):
        for number in range(3):
            assert await agent.step("a", work, number) == number
            await starting[-1]
    async with AsyncClient(mortal_plane.url) as client:
        assert [step.result for step in (await client.list_steps(fresh("run"))).steps] == done == [0, 1, 2]
