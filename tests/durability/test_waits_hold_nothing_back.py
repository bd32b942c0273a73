"""Thousands of calls wait on one server with five database connections: everything else goes on as if they were not."""

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from tests.durability.conftest import Figures
from tests.durability.invariants import broken
from tests.durability.plane import API, Plane, Webhook, ask, planes
from tests.durability.wire import Reply, Wire, in_lanes
from tests.postgres import Database

POOL = 5
LISTENER = 1
KIB_A_WAIT = 32
WAITS_AN_APPROVAL = 10
WAVE = 250
SIZES = [
    pytest.param(500, id="quick"),
    pytest.param(10_000, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(600)]),
]


class Held(NamedTuple):
    """A call that waits: for which run's approval, and the connection that it waits on."""

    run: str
    wire: Wire

    async def answered(self) -> None:
        """Read its answer, which is the decision of its own run."""
        reply = await self.wire.reply(60.0)
        await self.wire.close()
        assert reply.status == 200, reply
        assert (reply.body["execution_id"], reply.body["status"]) == (self.run, "approved")
        assert reply.body["response"]["data"] == self.run


@pytest.fixture
def files() -> Iterator[int]:
    """How many files this process may open; all that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("waits", SIZES)
async def test_all_else_is_served_while_they_wait(database: Database, figures: Figures, files: int, waits: int):
    assert files > waits + 200, "raise the hard limit of open files (ulimit -Hn)"
    runs = [f"run-{number}" for number in range(waits // WAITS_AN_APPROVAL)]
    with planes(database.url, POOL_SIZE=str(POOL)) as (plane,):
        await in_lanes(plane.url, runs, lambda wire, run: ask(wire, run, "deploy"))
        before = plane.memory()
        held = await hold(plane, runs * WAITS_AN_APPROVAL)
        kib = (plane.memory() - before) / 1024 / waits
        async with counted(database) as connections:
            ready = await slowest(plane, ["/health/ready"] * 20)
            looked = await slowest(plane, [f"{API}/executions/{run}" for run in runs[:20]])
            begun = time.monotonic()
            decided = await decide(plane, runs)
            await asyncio.gather(*(each.answered() for each in held))
            seconds = time.monotonic() - begun
    figures(
        "waiting calls on one server",
        waits=waits,
        KiB_a_wait=kib,
        connections=max(connections),
        slowest_ready_s=ready,
        slowest_look_s=looked,
        slowest_decision_s=decided,
        all_decided_and_answered_s=seconds,
    )
    assert max(ready, looked, decided) < 1.0
    assert max(connections) <= POOL + LISTENER
    assert kib <= KIB_A_WAIT
    await holds(database)


@pytest.mark.parametrize("waits", SIZES)
async def test_one_decision_answers_all_who_wait_for_it(database: Database, figures: Figures, files: int, waits: int):
    assert files > waits + 200, "raise the hard limit of open files (ulimit -Hn)"
    with planes(database.url, POOL_SIZE=str(POOL)) as (plane,):
        await in_lanes(plane.url, ["run"], lambda wire, run: ask(wire, run, "deploy"))
        held = await hold(plane, ["run"] * waits)
        begun = time.monotonic()
        decided = await decide(plane, ["run"])
        answers = asyncio.gather(*(each.answered() for each in held))
        ready = await slowest(plane, ["/health/ready"] * 20)
        await answers
        seconds = time.monotonic() - begun
    figures(
        "one decision for all who wait",
        waits=waits,
        decision_s=decided,
        slowest_ready_meanwhile_s=ready,
        all_answered_s=seconds,
    )
    assert max(ready, decided) < 1.0
    await holds(database)


async def hold(plane: Plane, runs: list[str]) -> list[Held]:
    """Send a waiting call for each run, wave by wave, and return once the server holds them all."""
    held: list[Held] = []
    for start in range(0, len(runs), WAVE):
        for run in runs[start : start + WAVE]:
            one = Held(run, Wire(plane.url))
            await one.wire.open()
            one.wire.send("GET", f"{API}/executions/{run}/approval-status?wait=60")
            held.append(one)
        await taken_up(plane, runs[start])
    return held


async def taken_up(plane: Plane, run: str) -> None:
    """Return once the server holds what was sent before: it serves in order, and each of these goes behind it."""
    wire = Wire(plane.url)
    for _ in range(3):
        reply = await wire.call("GET", f"{API}/executions/{run}/approval-status?wait=0.001")
        assert (reply.status, reply.body["status"]) == (200, "pending"), reply
    await wire.close()


async def slowest(plane: Plane, paths: list[str]) -> float:
    """Seconds of the slowest of these reads, one after the other."""
    return max(await in_lanes(plane.url, paths, timed_read, lanes=1))


async def timed_read(wire: Wire, path: str) -> float:
    begun = time.monotonic()
    reply: Reply = await wire.call("GET", path)
    assert reply.status == 200, reply
    return time.monotonic() - begun


async def decide(plane: Plane, runs: list[str]) -> float:
    """Approve each run's approval by a webhook, four at once; seconds of the slowest."""
    return max(await in_lanes(plane.url, runs, timed_decision, lanes=4))


async def timed_decision(wire: Wire, run: str) -> float:
    begun = time.monotonic()
    reply = await Webhook(run, "deploy", "approved", response=run).post(wire)
    assert (reply.status, reply.body["status"]) == (200, "processed"), reply
    return time.monotonic() - begun


@asynccontextmanager
async def counted(database: Database) -> AsyncIterator[list[int]]:
    """The numbers of connections that others had to the database, looked up all through the block."""
    seen: list[int] = []
    connection = await database.connect()
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'"
    )

    async def look() -> None:
        while True:
            seen.append(await connection.fetchval(query))
            await asyncio.sleep(0.05)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await connection.close()


async def holds(database: Database) -> None:
    """Every invariant."""
    connection = await database.connect()
    assert await broken(connection) == []
    await connection.close()
