"""The server or the agent is killed at each step of a dispatch: the run is done, and its caller gets its result."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from holdshort import AsyncClient

from tests.durability.agents import agents
from tests.durability.conftest import Figures
from tests.durability.gates import Gate, Gates, gates
from tests.durability.invariants import broken, settled
from tests.durability.journal import tally
from tests.durability.plain_agent import ACCEPTED, Hold, PlainAgent, plain_agent
from tests.durability.plane import NODE, Plane, free_port, planes, until
from tests.durability.wire import Wire
from tests.postgres import Database, wait_until_any_blocked
from tests.receiver import hang

LONG = [pytest.mark.proof, pytest.mark.timeout(300)]
LEASES = [pytest.param(False, id="quick"), pytest.param(True, id="long", marks=LONG)]
LEASE_SECONDS = 60.0


class Scene(NamedTuple):
    """What every point is played on; `waited_for`: a lease passes by itself."""

    plane: Plane
    gates: Gates
    agent: PlainAgent
    watcher: Any
    waited_for: bool

    async def kill(self) -> None:
        await asyncio.to_thread(self.plane.kill)

    async def restart(self) -> None:
        await asyncio.to_thread(self.plane.start)

    async def kill_at(self, gate: Gate) -> None:
        """Kill the server while it is held at a gate, open the gate, and see its transactions end."""
        await wait_until_any_blocked(self.watcher)
        await self.kill()
        await self.gates.open(gate)
        await until(self._nothing_runs)

    async def stands(self) -> tuple[str, int]:
        """The run's status and fence."""
        row = await self.watcher.fetchrow("SELECT status, fence FROM executions")
        return row["status"], row["fence"]

    async def given_again(self) -> list[Hold]:
        """What the agent was given, once the run came to it anew."""
        before = len(self.agent.told.got)
        if not self.waited_for:
            await self.watcher.execute("UPDATE dispatches SET lease_until = clock_timestamp()")
        return await self.agent.given(before + 1, seconds=LEASE_SECONDS)

    async def _nothing_runs(self) -> bool:
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'"
        return bool(await self.watcher.fetchval(f"{others} AND pid <> pg_backend_pid()") == 0)


async def before_the_claim(scene: Scene) -> list[Hold]:
    """Nothing stands but the run; it goes out as if it were the first time."""
    await wait_until_any_blocked(scene.watcher)
    await scene.kill_at(Gate.DISPATCH)
    assert await scene.stands() == ("queued", 0)
    assert scene.agent.told.got == []
    await scene.restart()
    return await scene.agent.given(1)


async def between_claim_and_send(scene: Scene) -> list[Hold]:
    """It stands as given to the agent, which never heard of it: given again, under the next fence."""
    await scene.kill_at(Gate.DISPATCH_COMMIT)
    assert await scene.stands() == ("running", 1)
    assert scene.agent.told.got == []
    await scene.restart()
    return await scene.given_again()


async def while_the_agent_reads(scene: Scene) -> list[Hold]:
    """The agent has the request and never answered: given again, and what it does under the first fence is refused."""
    await scene.agent.given(1)
    await scene.kill()
    scene.agent.told.answers = [ACCEPTED]
    await scene.restart()
    return await scene.given_again()


async def between_the_agents_answer_and_its_record(scene: Scene) -> list[Hold]:
    """The agent said that it has the run, and the server died before it wrote that down."""
    await scene.agent.given(1)
    await scene.kill_at(Gate.DISPATCH)
    await scene.restart()
    return await scene.given_again()


async def between_the_agents_answer_and_its_record_with_a_sign(scene: Scene) -> list[Hold]:
    """As before, but the agent does a step before the lease passes: it has the run, and keeps it."""
    (hold,) = await scene.agent.given(1)
    await scene.kill_at(Gate.DISPATCH)
    await scene.restart()
    wire = Wire(scene.plane.url)
    assert (await hold.step(wire, "first", previous="")).status == 201
    await wire.close()
    return [hold]


async def after_the_record(scene: Scene) -> list[Hold]:
    """The agent has it, and everybody knows."""
    holds = await scene.agent.given(1)
    await until(lambda: scene.watcher.fetchval("SELECT due_at IS NULL FROM dispatches"))
    await scene.kill()
    await scene.restart()
    return holds


CLOSED = {before_the_claim: Gate.DISPATCH, between_claim_and_send: Gate.DISPATCH_COMMIT}
POINTS = [
    before_the_claim,
    between_claim_and_send,
    while_the_agent_reads,
    between_the_agents_answer_and_its_record,
    between_the_agents_answer_and_its_record_with_a_sign,
    after_the_record,
]


async def set_the_stage(scene: Scene, point: Callable[[Scene], Awaitable[list[Hold]]]) -> None:
    """Close the gate that the point is at, or have the agent close it, or say nothing."""
    if point in CLOSED:
        await scene.gates.close(CLOSED[point])
    elif point is while_the_agent_reads:
        scene.agent.told.answers = [hang(asyncio.Event())]
    elif point is not after_the_record:
        scene.agent.told.answers = [close_the_gate_and_take(scene), ACCEPTED]


def close_the_gate_and_take(scene: Scene) -> Any:
    async def answer(got: Any, writer: asyncio.StreamWriter) -> None:
        await scene.gates.close(Gate.DISPATCH)
        await ACCEPTED(got, writer)

    return answer


async def execute(url: str, reasoner: str, given: dict[str, Any]) -> Any:
    """Call a reasoner and wait for its end, however long and through whatever restarts."""
    async with AsyncClient(url, patience=None) as client:
        return await client.execute(NODE, reasoner, given, wait=None)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("waited_for", LEASES)
async def test_the_server_is_killed(
    database: Database,
    connection: Any,
    figures: Figures,
    point: Callable[[Scene], Awaitable[list[Hold]]],
    *,
    waited_for: bool,
):
    async with gates(database) as built, plain_agent() as agent:
        with planes(database.url) as (plane,):
            wire = Wire(plane.url)
            await agent.register(wire, "plain")
            await wire.close()
            scene = Scene(plane, built, agent, connection, waited_for)
            await set_the_stage(scene, point)
            calling = asyncio.create_task(execute(plane.url, "work", {"n": 1}))
            *before, last = await point(scene)
            await work(plane.url, before, last)
            ended = await asyncio.wait_for(calling, 60)
            await until(lambda: settled(connection))
    assert (ended.status, ended.result) == ("succeeded", {"under": last.fence})
    assert [hold.fence for hold in await agent.given(0)] == [hold.fence for hold in (*before, last)]
    steps = await connection.fetchval("SELECT array_agg(name ORDER BY position) FROM steps")
    assert steps == STEPS.get(point, ["work"])
    assert await broken(connection) == []
    figures(f"server killed {point.__name__.replace('_', ' ')}", given=len(before) + 1, fence=last.fence)


STEPS = {between_the_agents_answer_and_its_record_with_a_sign: ["first", "work"]}


async def work(url: str, before: list[Hold], last: Hold) -> None:
    """Work and report under the last fence; what was given under an earlier one is refused."""
    wire = Wire(url)
    for hold in before:
        refused = await hold.step(wire, "work", previous="")
        assert (refused.status, refused.body["error"]) == (409, "stale_instance")
    assert (await last.step(wire, "work", previous=None)).status == 201
    assert (await last.report(wire, result={"under": last.fence})).status == 200
    await wire.close()


@pytest.mark.parametrize(
    ("dies", "same_port", "waited_for"),
    [
        pytest.param("before", False, False, id="before-quick"),
        pytest.param("after", True, False, id="after-quick"),
        *(
            pytest.param(dies, same_port, True, id=f"{dies}-{same_port}-long", marks=LONG)
            for dies in ("before", "after")
            for same_port in (True, False)
        ),
    ],
)
async def test_the_agent_is_killed_around_its_acknowledgement(
    database: Database, connection: Any, tmp_path: Path, dies: str, *, same_port: bool, waited_for: bool
):
    with planes(database.url) as (plane,), agents(tmp_path, connection) as run:
        first = await run.start(plane.url, dies=dies)
        calling = asyncio.create_task(execute(plane.url, "work", {"number": 1, "questions": []}))
        await first.ended()
        second = await run.start(plane.url, port=first.port if same_port else free_port())
        if not waited_for:
            await run.lose(first)
        ended = await asyncio.wait_for(calling, LEASE_SECONDS)
        await until(lambda: settled(connection))
    tokens = [row["result"].strip('"') for row in await connection.fetch("SELECT result FROM steps ORDER BY position")]
    assert (ended.status, ended.result) == ("succeeded", {"number": 1, "decisions": [], "steps": tokens})
    counted = tally(run.reader.look(), tokens, {first.pid})
    assert counted.wrong == []
    assert (counted.steps, counted.runs_of_steps) == (2, 2)
    given = [(line["pid"], line["fence"]) for line in run.reader.lines if line["at"] == "given"]
    assert given[0] == (first.pid, 1)
    assert {pid for pid, _ in given} == {first.pid, second.pid}
    assert await broken(connection) == []
