"""An agent program is killed again and again, in every phase of its runs, while answers come in: all end right."""

import asyncio
import os
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.durability import phases
from tests.durability.agents import AgentProcess, Agents, agents
from tests.durability.conftest import Figures
from tests.durability.desk import Desk
from tests.durability.invariants import broken, settled
from tests.durability.journal import working
from tests.durability.outcomes import all_over, check
from tests.durability.plain_agent import start
from tests.durability.plane import Plane, planes, until
from tests.durability.plans import Plan, draw
from tests.durability.wire import Wire
from tests.postgres import Database

SEED = int(os.environ.get("PROOF_SEED", "20260301"))
SERVER_EVERY = 4
END_SECONDS = 240.0
LONGEST_PAUSE_SECONDS = 1.0
PHASE_SECONDS = 2.0


class Chaos:
    """Starts runs, kills whoever has them, and starts the program again in another way each time."""

    def __init__(self, connection: Any, served: list[Plane], programs: Agents, desk: Desk, plans: list[Plan]) -> None:
        self.ids: dict[str, Plan] = {}
        self.met: Counter[str] = Counter()
        self.moments: list[float] = []
        self.servers_killed = 0
        self._connection = connection
        self._planes = served
        self._programs = programs
        self._desk = desk
        self._plans = plans
        self._random = random.Random(SEED)

    async def kill_again_and_again(self, kills: int, more: int) -> None:
        """An equal share of the runs is begun before each kill; `more` kills where a phase was not met by then."""
        await self._start_one(None)
        share = -(-len(self._plans) // kills)
        for kill in range(kills + more):
            unmet = [phase for phase in phases.ALL if phase not in self.met]
            if kill >= kills and not unmet:
                break
            await self._begin(self._plans[kill * share : (kill + 1) * share])
            victim = await self._moment(self._random.choice(unmet or phases.ALL))
            await victim.kill()
            self._desk.kills += 1
            self.met.update(await self._standing(victim))
            if kill % SERVER_EVERY == SERVER_EVERY - 1:
                await self._restart(self._planes[kill // SERVER_EVERY % len(self._planes)])
            await self._replace(victim)

    async def _begin(self, plans: list[Plan]) -> None:
        wire = Wire(self._planes[0].url)
        for plan in plans:
            execution_id = await start(wire, **plan.input)
            self.ids[execution_id] = plan
            await self._desk.take(execution_id, plan)
        await wire.close()

    async def _moment(self, wanted: str) -> AgentProcess:
        """Let some time pass, drawn from the seed, and then until a process has a run in this phase, if that comes."""
        self.moments.append(round(self._random.uniform(0, LONGEST_PAUSE_SECONDS), 2))
        await asyncio.sleep(self.moments[-1])
        chosen = self._random.choice(self._programs.alive)

        async def found() -> bool:
            nonlocal chosen
            for process in self._programs.alive:
                if wanted in await self._standing(process):
                    chosen = process
                    return True
            return False

        with suppress(TimeoutError):
            await until(found, seconds=PHASE_SECONDS, every=0.005)
        return chosen

    async def _standing(self, process: AgentProcess) -> list[str]:
        at_work = working(self._programs.reader.look(), {process.pid})
        return await phases.standing(self._connection, process.instance_id, at_work)

    async def _restart(self, plane: Plane) -> None:
        """A server dies with the agent, and comes back before it."""
        await asyncio.to_thread(plane.kill)
        await asyncio.to_thread(plane.start)
        self.servers_killed += 1

    async def _replace(self, victim: AgentProcess) -> None:
        """On its port, on another one, by two; or, where one is left, by nobody."""
        ways = ["same", "same", "other"] + (["nobody"] if self._programs.alive else ["two"])
        way = self._random.choice(ways)
        if way != "nobody":
            await self._start_one(None if way == "other" else victim.port)
        if way == "two":
            await self._start_one(None)

    async def _start_one(self, port: int | None) -> None:
        plane = self._planes[len(self._programs.started) % len(self._planes)]
        await self._programs.start(plane.url, port=port)


@pytest.mark.parametrize(
    ("runs", "kills", "more"),
    [
        pytest.param(16, 3, 0, id="quick", marks=pytest.mark.timeout(300)),
        pytest.param(200, 20, 10, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_through_kills_of_the_agent(
    database: Database,
    connection: Any,
    second_connection: Any,
    figures: Figures,
    tmp_path: Path,
    *,
    runs: int,
    kills: int,
    more: int,
):
    plans = draw(runs, SEED)
    with planes(database.url, 2) as served, agents(tmp_path, connection) as programs:
        desk = Desk(second_connection, served)
        chaos = Chaos(connection, served, programs, desk, plans)
        answering = asyncio.create_task(desk.work())
        await chaos.kill_again_and_again(kills, more)
        desk.patient = False
        await until(lambda: all_over(connection, answering), seconds=END_SECONDS)
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        await until(lambda: settled(connection), seconds=60)
        await desk.close()
        ended = programs.ended
    counted = await check(connection, chaos.ids, programs, ended)
    assert await broken(connection) == []
    dispatches = await connection.fetchval("SELECT sum(fence) FROM executions")
    killed = {"kills": desk.kills, "and_of_servers_with_it": chaos.servers_killed, "after_s": chaos.moments}
    figures("kills of the agent", seed=SEED, **killed, runs=runs, dispatches=dispatches)
    figures("what the kills met", **dict(sorted(chaos.met.items())))
    figures(
        "steps through the kills",
        steps=counted.steps,
        runs_of_steps=counted.runs_of_steps,
        interrupted_in_flight=counted.in_flight,
        ended_and_not_yet_stored=counted.unsaved,
    )
    figures("answers to them", **dict(sorted(desk.sent.items())))
    assert not more or set(chaos.met) == set(phases.ALL)
