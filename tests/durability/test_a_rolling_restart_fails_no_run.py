"""Two instances of an agent program are stopped and replaced in turn, under load: no run fails, no work is lost."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from holdshort import AsyncClient, Execution

from tests.durability.agents import AgentProcess, Agents, agents
from tests.durability.conftest import Figures
from tests.durability.desk import Desk
from tests.durability.invariants import broken, settled
from tests.durability.journal import deeds
from tests.durability.outcomes import all_over, check, released
from tests.durability.plain_agent import start
from tests.durability.plane import NODE, planes, until
from tests.durability.plans import Answer, Plan
from tests.durability.wire import Wire
from tests.durability.working_agent import DRAIN_SECONDS
from tests.postgres import Database

CALLERS = 3
SLOW_RUNS = 3
SLOW_SECONDS = 3.0 * DRAIN_SECONDS
QUICK_SECONDS = 0.02
STEP_SECONDS = 0.2
PACE_SECONDS = 0.25
END_SECONDS = 240.0


class Size(NamedTuple):
    """How many runs pause, how often each instance is replaced, and how much of the work outlasts a drain."""

    pausing: int
    rounds: int
    slow: int


class Load:
    """Runs of three kinds: those that pause are there from the beginning, others come all the time."""

    def __init__(self, url: str, desk: Desk) -> None:
        self.plans: dict[str, Plan] = {}
        self.called: list[Execution] = []
        self._url = url
        self._desk = desk
        self._numbers = itertools.count()

    async def pause(self, count: int) -> None:
        """Start runs that ask one question each, answered after none, one or two restarts."""
        for number in range(count):
            answer = Answer("one", 1, "approved", after=number % 3, early=False, copies=1)
            await self.start(Plan(next(self._numbers), "pausing", [answer], QUICK_SECONDS))

    async def begin_slowly(self, count: int) -> None:
        """Start runs each of whose steps outlasts a drain."""
        for _ in range(count):
            await self.start(Plan(next(self._numbers), "slow", [], SLOW_SECONDS))

    @property
    def slow(self) -> set[str]:
        return {run for run, plan in self.plans.items() if plan.kind == "slow"}

    async def start(self, plan: Plan) -> None:
        wire = Wire(self._url)
        execution_id = await start(wire, **plan.input)
        self.plans[execution_id] = plan
        await self._desk.take(execution_id, plan)
        await wire.close()

    async def work(self, stopped: asyncio.Event) -> None:
        """Start runs that only work, at a steady pace, until stopped."""
        while not stopped.is_set():
            await self.start(Plan(next(self._numbers), "working", [], STEP_SECONDS))
            await asyncio.sleep(PACE_SECONDS)

    async def call(self, stopped: asyncio.Event) -> None:
        """Call the program and wait for each result, as programs do that know nothing of restarts."""
        async with AsyncClient(self._url) as client:
            while not stopped.is_set():
                plan = Plan(next(self._numbers), "called", [], STEP_SECONDS)
                ended = await client.execute(NODE, "work", plan.input, wait=END_SECONDS)
                self.called.append(ended)
                self.plans[ended.execution_id] = plan


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(Size(pausing=30, rounds=1, slow=0), id="quick", marks=pytest.mark.timeout(300)),
        pytest.param(
            Size(pausing=300, rounds=3, slow=SLOW_RUNS), id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]
        ),
    ],
)
async def test_under_load(
    database: Database,
    connection: Any,
    second_connection: Any,
    figures: Figures,
    tmp_path: Path,
    size: Size,
):
    stopped = asyncio.Event()
    with planes(database.url, 2) as served, agents(tmp_path, connection) as programs:
        desk = Desk(second_connection, served)
        load = Load(served[0].url, desk)
        pair = [await programs.start(plane.url) for plane in served]
        await load.pause(size.pausing)
        await until(lambda: all_asked(connection, size.pausing), seconds=END_SECONDS)
        busy = [asyncio.create_task(desk.work()), asyncio.create_task(load.work(stopped))]
        busy += [asyncio.create_task(load.call(stopped)) for _ in range(CALLERS)]
        for number in range(size.rounds):
            await begin_slow_runs(load, programs, size.slow)
            for at, plane in enumerate(served):
                pair[at] = await replace(programs, pair[at], plane.url, same_port=bool(number % 2))
                await until(lambda process=pair[at]: has_a_share(connection, process), seconds=60)
                desk.kills += 1
        stopped.set()
        await asyncio.gather(*busy[1:])
        desk.patient = False
        await until(lambda: all_over(connection, busy[0]), seconds=END_SECONDS)
        busy[0].cancel()
        await asyncio.gather(busy[0], return_exceptions=True)
        await until(lambda: settled(connection), seconds=60)
        await desk.close()
        ended = programs.ended
    assert {run.status for run in load.called} == {"succeeded"}
    counted = await check(connection, load.plans, programs, ended)
    repeated = counted.in_flight + counted.unsaved
    assert repeated == sum(deed.run in load.slow for deed in cut_off(programs))
    shares = dict(await connection.fetch(SHARES))
    assert set(shares) == {process.instance_id for process in programs.started}
    assert await broken(connection) == []
    reasons = await released(connection, programs)
    assert reasons["handed_back"] > 0
    figures(
        "rolling restarts under load",
        instances_replaced=2 * size.rounds,
        runs=len(load.plans),
        of_them_called_and_waited_for=len(load.called),
        failed=await connection.fetchval("SELECT count(*) FROM executions WHERE status <> 'succeeded'"),
        handed_back=reasons["handed_back"],
        on_their_way_to_an_instance_that_was_gone=reasons["instance_gone"],
        steps=counted.steps,
        repeated=repeated,
        in_flight_past_the_drain_limit=repeated,
        dispatches_of_each_instance=sorted(shares.values()),
    )


SHARES = "SELECT data ->> 'instance_id', count(*) FROM history WHERE type = 'execution.dispatched' GROUP BY 1"


async def has_a_share(connection: Any, process: AgentProcess) -> bool:
    return process.instance_id in dict(await connection.fetch(SHARES))


async def all_asked(connection: Any, count: int) -> bool:
    return bool(await connection.fetchval("SELECT count(*) = $1 FROM executions WHERE status = 'waiting'", count))


async def begin_slow_runs(load: Load, programs: Agents, count: int) -> None:
    """Start runs whose steps outlast a drain, and return once they are in them."""
    await load.begin_slowly(count)

    async def begun() -> bool:
        return load.slow <= {deed.run for deed in deeds(programs.reader.look())}

    await until(begun, seconds=60)


async def replace(programs: Agents, old: AgentProcess, url: str, *, same_port: bool) -> AgentProcess:
    """SIGTERM, the end of the process, and another one in its place."""
    await old.terminate()
    assert old.process.returncode in {0, -15}, programs.said()
    return await programs.start(url, port=old.port if same_port else None)


def cut_off(programs: Agents) -> Iterator[Any]:
    """What was in flight when its process ended."""
    return (deed for deed in deeds(programs.reader.look()) if deed.ended is None)
