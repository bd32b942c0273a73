"""Runs that the real control plane gives to real agents: they end right, whatever dies, stops or is cancelled."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from holdshort import Agent, AsyncClient, Execution, ExecutionCancelled, ExecutionFinished, Verdict

from controlplane.cli.demo.programs import Program, free_port
from tests.contract.planes import PATIENCE_SECONDS, Plane, asked, listening, registered, until

AN_AGENT = Path(__file__).with_name("an_agent.py")
Name = Callable[[str], str]
Start = Callable[..., Program]


@pytest.fixture
async def agent(plane: Plane, fresh: Name) -> AsyncIterator[Agent]:
    made = Agent(fresh("node"), "1", control_plane_url=plane.url)
    async with listening(made):
        yield made


@pytest.fixture
def start(plane: Plane, fresh: Name) -> Iterator[Start]:
    """Starts processes of one node, each where it is told."""
    started: list[Program] = []

    def run(port: int | None = None, callback: str = "auto") -> Program:
        at = free_port() if port is None else port
        environ = {"HOLDSHORT_URL": plane.url, "NODE": fresh("node"), "CALLBACK": callback}
        program = Program("the agent", [str(AN_AGENT), str(at)], environ, health=f"http://127.0.0.1:{at}/health")
        program.start()
        started.append(program)
        program.wait_until_ready()
        return program

    yield run
    for program in started:
        program.kill()


class Toil:
    """A run that works until it may end, and the two files that say so."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.run = ""
        self.begun = folder / "begun"
        self._may_end = folder / "may end"

    @property
    def given(self) -> dict[str, str]:
        return {"begun": str(self.begun), "may_end": str(self._may_end)}

    async def began(self, times: int = 1) -> list[int]:
        """The processes that began it, once there are so many."""

        async def look() -> list[int]:
            return [int(line) for line in self.begun.read_text().split()] if self.begun.exists() else []

        return await until(look, lambda pids: len(pids) >= times)

    def may_end(self) -> None:
        self._may_end.touch()


async def queue(client: AsyncClient, node: str, reasoner: str, **given: object) -> str:
    return (await client.execute_async(node, reasoner, given)).execution_id


async def ended(client: AsyncClient, run: str) -> Execution:
    return await until(lambda: client.get_execution(run), lambda found: found.final and not found.outcome_pending)


async def test_a_call_gets_what_its_reasoner_returns(agent: Agent, client: AsyncClient):
    @agent.reasoner()
    async def breaks() -> None:
        raise RuntimeError("no such file")

    @agent.reasoner()
    def shouts(word: str) -> str:
        return word.upper()

    @agent.reasoner(timeout_seconds=30)
    async def adds(numbers: list[int]) -> dict[str, int]:
        agent.note("adding")
        return {"sum": sum(numbers)}

    await registered(client, agent.node_id, "adds")
    run = await client.execute(agent.node_id, "adds", {"numbers": [1, 2, 3]}, wait=PATIENCE_SECONDS)
    assert (run.status, run.result, run.fence, run.dispatched) == ("succeeded", {"sum": 6}, 1, True)
    assert (await client.execute(agent.node_id, "shouts", {"word": "yes"})).result == "YES"
    broken = await client.execute(agent.node_id, "breaks")
    assert (broken.status, broken.error) == ("failed", "RuntimeError: no such file")
    refused = await client.execute(agent.node_id, "adds", {"numbers": "many"})
    assert (refused.status, refused.status_reason) == ("failed", "agent_refused")
    assert "numbers" in str(refused.error)


@pytest.mark.parametrize("callback", ["push", "pull", "auto"])
async def test_a_run_that_waits_is_found_by_the_call_that_waits_for_it(
    plane: Plane, client: AsyncClient, fresh: Name, callback: str
):
    agent = Agent(fresh("node"), "1", control_plane_url=plane.url, callback=callback)  # type: ignore[arg-type]

    @agent.reasoner()
    def plain() -> str:
        return agent.pause_sync(fresh("q")).feedback

    async with listening(agent):
        await registered(client, agent.node_id, "plain")
        calling = asyncio.create_task(client.execute(agent.node_id, "plain", wait=None))
        (question,) = await asked(client, fresh("q"))
        await client.decide(question.approval_id, Verdict(decision="approved", feedback="fine"))
        assert (await calling).result == "fine"


# At another address it is only known when the lease has passed that the first is gone.
@pytest.mark.parametrize(("same_address", "decided"), [(True, "before"), (True, "after"), (False, "before")])
async def test_killed_while_it_waits_it_goes_on_by_itself(
    start: Start, client: AsyncClient, fresh: Name, *, same_address: bool, decided: str
):
    port = free_port()
    first = start(port)
    await registered(client, fresh("node"), "ask")
    run = await queue(client, fresh("node"), "ask", request_id=fresh("q"))
    (question,) = await asked(client, fresh("q"))
    first.kill()

    async def decide() -> None:
        await client.decide(question.approval_id, Verdict(decision="approved", feedback="good"))

    if decided == "before":
        await decide()
    second = start(port if same_address else None)
    if decided == "after":
        await decide()
    found = await ended(client, run)
    assert (found.status, found.result) == ("succeeded", ["approved", "good", second.pid])


async def test_what_was_rejected_while_nobody_was_there_is_seen_by_its_code(
    start: Start, client: AsyncClient, fresh: Name
):
    port = free_port()
    first = start(port)
    await registered(client, fresh("node"), "ask")
    run = await queue(client, fresh("node"), "ask", request_id=fresh("q"))
    (question,) = await asked(client, fresh("q"))
    first.kill()
    await client.decide(question.approval_id, Verdict(decision="rejected", feedback="no"))
    second = start(port)
    found = await ended(client, run)
    assert (found.status, found.status_reason) == ("cancelled", "approval_rejected: no")
    assert found.result == ["rejected", "no", second.pid]


async def test_after_a_rejection_nothing_new_is_asked(agent: Agent, client: AsyncClient, fresh: Name):
    @agent.reasoner()
    async def asks() -> str:
        first = await agent.pause(fresh("q"))
        with pytest.raises(ExecutionFinished):
            await agent.pause(fresh("another"))
        return first.decision

    await registered(client, agent.node_id, "asks")
    run = await queue(client, agent.node_id, "asks")
    (question,) = await asked(client, fresh("q"))
    await client.decide(question.approval_id, Verdict(decision="rejected"))
    found = await ended(client, run)
    assert (found.status, found.result) == ("cancelled", "rejected")


async def test_killed_while_it_works_it_is_done_by_the_next(
    start: Start, client: AsyncClient, fresh: Name, tmp_path: Path
):
    toil = Toil(tmp_path)
    port = free_port()
    first = start(port)
    await registered(client, fresh("node"), "toil")
    run = await queue(client, fresh("node"), "toil", **toil.given)
    await toil.began()
    first.kill()
    second = start(port)
    assert await toil.began(2) == [first.pid, second.pid]
    toil.may_end()
    found = await ended(client, run)
    assert (found.status, found.result, found.fence) == ("succeeded", second.pid, 2)


async def test_a_process_that_stood_still_and_was_replaced_writes_nothing(
    start: Start, client: AsyncClient, fresh: Name, tmp_path: Path
):
    toil = Toil(tmp_path)
    first = start()
    await registered(client, fresh("node"), "toil")
    run = await queue(client, fresh("node"), "toil", **toil.given)
    await toil.began()
    second = start()
    await registered(client, fresh("node"), "toil", 2)
    os.kill(first.pid, signal.SIGSTOP)
    try:
        # Its lease has to pass first.
        await registered(client, fresh("node"), "toil", 1)
        assert await toil.began(2) == [first.pid, second.pid]
    finally:
        os.kill(first.pid, signal.SIGCONT)
    await registered(client, fresh("node"), "toil", 2)
    toil.may_end()
    found = await ended(client, run)
    assert (found.status, found.result, found.fence) == ("succeeded", second.pid, 2)
    assert first.wrote(rf"run {run} ended here: .*", 0.0)


async def test_a_deploy_of_two_instances_loses_and_repeats_nothing(
    start: Start, client: AsyncClient, fresh: Name, tmp_path: Path
):
    programs = [start(), start()]
    await registered(client, fresh("node"), "ask", 2)
    asks = [await queue(client, fresh("node"), "ask", request_id=fresh(f"q{n}")) for n in range(12)]
    for n in range(12):
        await asked(client, fresh(f"q{n}"))
    toils = [Toil(tmp_path / str(n)) for n in range(4)]
    for toil in toils:
        toil.run = await queue(client, fresh("node"), "toil", **toil.given)
        await toil.began()
    for old in programs:
        new = start()
        await registered(client, fresh("node"), "ask", 3)
        begun = time.monotonic()
        old.end()
        for toil in toils:
            toil.may_end()
        old.wait_until_gone(12)
        assert time.monotonic() - begun < 10
        assert not old.running
        assert new.running
        await registered(client, fresh("node"), "ask", 2)
    for n, run in enumerate(asks):
        found = await client.get_execution(run)
        assert (found.status, found.instance_id) == ("waiting", None), n
        (question,) = await asked(client, fresh(f"q{n}"))
        await client.decide(question.approval_id, Verdict(decision="approved", feedback=str(n)))
    for n, run in enumerate(asks):
        found = await ended(client, run)
        assert (found.status, found.result[:2]) == ("succeeded", ["approved", str(n)])
    for toil in toils:
        found = await ended(client, toil.run)
        assert (found.status, found.fence) == ("succeeded", 1)
        assert await toil.began() == [found.result]


@pytest.mark.parametrize("plain", [True, False])
async def test_an_operators_cancellation_reaches_the_code(agent: Agent, client: AsyncClient, fresh: Name, plain: bool):
    works, went = asyncio.Event(), list[str]()
    loop = asyncio.get_running_loop()

    @agent.reasoner()
    async def waits() -> None:
        works.set()
        try:
            await asyncio.Event().wait()
        except ExecutionCancelled as end:
            went.append(end.details["status_reason"])
            raise

    @agent.reasoner("plain")
    def asks() -> None:
        loop.call_soon_threadsafe(works.set)
        try:
            agent.pause_sync(fresh("q"))
        except ExecutionCancelled:
            went.append("enough")
            raise

    await registered(client, agent.node_id, "plain")
    run = await queue(client, agent.node_id, "plain" if plain else "waits")
    await works.wait()
    if plain:
        await asked(client, fresh("q"))
    await client.cancel_execution(run, reason="enough")
    await until(lambda: _there(run in agent.asgi.lifetime.dispatches), lambda there: not there)
    assert went == ["enough"]
    found = await client.get_execution(run)
    assert (found.status, found.status_reason) == ("cancelled", "enough")


async def _there(value: bool) -> bool:
    return value


async def test_only_work_counts_against_the_limit(agent: Agent, client: AsyncClient, fresh: Name):
    @agent.reasoner(timeout_seconds=0.5)
    async def works() -> None:
        await agent.pause(fresh("q"))
        await asyncio.Event().wait()

    await registered(client, agent.node_id, "works")
    run = await queue(client, agent.node_id, "works")
    (question,) = await asked(client, fresh("q"))
    begun = time.monotonic()
    await until(lambda: _there(time.monotonic() - begun > 0.7), bool)
    assert (await client.get_execution(run)).status == "waiting"
    await client.decide(question.approval_id, Verdict(decision="approved"))
    assert (await ended(client, run)).status == "timeout"


async def test_a_control_plane_killed_under_a_run_is_not_noticed(mortal_plane: Plane, fresh: Name):
    agent = Agent(fresh("node"), "1", control_plane_url=mortal_plane.url)
    begun, may_end = asyncio.Event(), asyncio.Event()

    @agent.reasoner()
    async def works() -> str:
        begun.set()
        await may_end.wait()
        return (await agent.pause(fresh("q"))).feedback

    async with listening(agent), AsyncClient(mortal_plane.url) as client:
        await registered(client, agent.node_id, "works")
        calling = asyncio.create_task(client.execute(agent.node_id, "works", wait=None))
        await begun.wait()
        mortal_plane.kill()
        may_end.set()
        await asyncio.to_thread(mortal_plane.start)
        (question,) = await asked(client, fresh("q"))
        mortal_plane.kill()
        await asyncio.to_thread(mortal_plane.start)
        await client.decide(question.approval_id, Verdict(decision="approved", feedback="through both"))
        run = await calling
        assert (run.status, run.result, run.fence) == ("succeeded", "through both", 1)
        assert len((await client.list_executions()).executions) == 1
