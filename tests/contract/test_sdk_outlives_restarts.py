import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from holdshort import Agent, Approval, ApprovalFilter, ApprovalResult, AsyncClient, Verdict

from controlplane.cli.demo.programs import Program, free_port, stop
from tests.contract.planes import PATIENCE_SECONDS, Plane, asked, listening, until

AN_AGENT = Path(__file__).with_name("an_agent.py")
Name = Callable[[str], str]


@pytest.fixture(params=["push", "pull", "auto"])
def callback(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def mortal_client(mortal_plane: Plane) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(mortal_plane.url) as made:
        yield made


async def paused(agent: Agent, run: str, request_id: str) -> ApprovalResult:
    async with agent.execution(run):
        return await agent.pause(request_id)


async def test_a_control_plane_killed_while_pauses_wait_is_not_noticed(
    mortal_plane: Plane, mortal_client: AsyncClient, callback: str
):
    agent = Agent("node", "1", control_plane_url=mortal_plane.url, callback=callback)  # type: ignore[arg-type]
    async with listening(agent):
        waiting = [asyncio.create_task(paused(agent, f"run-{n}", f"q{n}")) for n in range(2)]
        for n in range(2):
            (question,) = await asked(mortal_client, f"q{n}")
            mortal_plane.kill()
            await asyncio.to_thread(mortal_plane.start)
            await mortal_client.decide(question.approval_id, Verdict(decision="approved", feedback=str(n)))
            assert (await waiting[n]).feedback == str(n)
    assert len((await mortal_client.list_approvals()).approvals) == 2


async def test_a_question_asked_while_the_control_plane_is_away_is_asked_once(
    mortal_plane: Plane, mortal_client: AsyncClient
):
    agent = Agent("node", "1", control_plane_url=mortal_plane.url, callback="pull")
    async with agent.execution("run-1"):
        mortal_plane.kill()
        waiting = [asyncio.create_task(agent.pause(f"q{n}")) for n in range(5)]
        await asyncio.to_thread(mortal_plane.start)
        for n in range(5):
            (question,) = await asked(mortal_client, f"q{n}")
            await mortal_client.decide(question.approval_id, Verdict(decision="approved"))
        assert all([(await each).approved for each in waiting])
    assert len((await mortal_client.list_approvals()).approvals) == 5


async def test_the_stream_goes_on_after_a_restart_without_a_gap_or_a_repeat(
    mortal_plane: Plane, mortal_client: AsyncClient
):
    seen: list[str] = []
    more = asyncio.Event()

    async def read() -> None:
        async for event in mortal_client.events(types=["execution.created"]):
            seen.append(event.data["execution_id"])
            more.set()

    reading = asyncio.create_task(read())
    for n in range(4):
        await mortal_client.create_execution("node", f"run-{n}")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while len(seen) <= n:
                await more.wait()
                more.clear()
        if n % 2:
            mortal_plane.kill()
            await asyncio.to_thread(mortal_plane.start)
    reading.cancel()
    assert seen == [f"run-{n}" for n in range(4)]


def callback_moved(approval: Approval) -> bool:
    return any(entry["type"] == "approval.callback_changed" for entry in approval.history)


class Instance:
    """One process of the agent, on a port of its own."""

    def __init__(self, plane: Plane, node: str, callback: str) -> None:
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        environ = {"HOLDSHORT_URL": plane.url, "NODE": node, "CALLBACK": callback}
        self.program = Program("the agent", [str(AN_AGENT), str(port)], environ, health=f"{self._url}/health")
        self.program.start()
        self.program.wait_until_ready()

    async def call(self, reasoner: str, run: str, **arguments: Any) -> Any:
        """The reasoner's result."""
        async with httpx.AsyncClient(timeout=PATIENCE_SECONDS) as http:
            answer = await http.post(
                f"{self._url}/reasoners/{reasoner}", json=arguments, headers={"x-execution-id": run}
            )
        assert answer.status_code == 200, answer.text
        return answer.json()["result"]

    async def killed_while(self, call: "asyncio.Task[Any]") -> None:
        self.program.kill()
        with pytest.raises(httpx.TransportError):
            await call


@pytest.fixture
def instances(plane: Plane, fresh: Name, callback: str) -> Iterator[Callable[[], Instance]]:
    """Starts processes of one node."""
    with ended() as started:

        def start() -> Instance:
            instance = Instance(plane, fresh("node"), callback)
            started.append(instance.program)
            return instance

        yield start


@contextmanager
def ended() -> Iterator[list[Program]]:
    programs: list[Program] = []
    try:
        yield programs
    finally:
        stop(programs)


async def test_a_killed_agent_finds_the_decision_that_was_made_meanwhile(
    instances: Callable[[], Instance], client: AsyncClient, fresh: Name
):
    first = instances()
    call = asyncio.create_task(first.call("work", fresh("run"), request_id=fresh("q")))
    (question,) = await asked(client, fresh("q"))
    await first.killed_while(call)
    await client.decide(question.approval_id, Verdict(decision="request_changes", feedback="shorter"))
    second = instances()
    wanted = [1, "request_changes", "shorter"]
    assert await second.call("look_up", fresh("look"), request_id=fresh("q"), execution_id=fresh("run")) == wanted
    call = asyncio.create_task(second.call("work", fresh("run"), request_id=fresh("q")))
    (question,) = await asked(client, fresh("q"), round_=2)
    await client.decide(question.approval_id, Verdict(decision="approved", feedback="good"))
    assert await call == [wanted, [2, "approved", "good"]]
    rounds = await client.list_approvals(ApprovalFilter(approval_request_id=fresh("q")))
    assert sorted(each.round for each in rounds.approvals) == [1, 2]


async def test_a_killed_agent_is_told_at_its_new_address_what_is_decided_later(
    instances: Callable[[], Instance], client: AsyncClient, fresh: Name, callback: str
):
    first = instances()
    call = asyncio.create_task(first.call("work", fresh("run"), request_id=fresh("q")))
    (question,) = await asked(client, fresh("q"))
    await first.killed_while(call)
    second = instances()
    known = {"request_id": fresh("q"), "execution_id": fresh("run")}
    looking = asyncio.create_task(second.call("look_up", fresh("look"), **known))
    call = asyncio.create_task(second.call("work", fresh("run"), request_id=fresh("q")))
    if callback != "pull":
        await until(lambda: client.get_approval(question.approval_id), callback_moved)
    await client.decide(question.approval_id, Verdict(decision="rejected", feedback="no"))
    assert await looking == [1, "rejected", "no"]
    assert await call == [[1, "rejected", "no"]]
    stands = await client.get_execution(fresh("run"))
    assert (stands.status, stands.result) == ("cancelled", [[1, "rejected", "no"]])
