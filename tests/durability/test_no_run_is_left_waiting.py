"""Two approvals of one run are decided at the same instant on two servers: the run goes on each time."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from tests.durability.conftest import Figures
from tests.durability.invariants import broken, lost
from tests.durability.plane import API, Plane, Webhook, ask, ask_more, planes
from tests.durability.wire import Reply, encode, wires
from tests.postgres import Database

LANES = 3
SIZES = [
    pytest.param(60, id="quick"),
    pytest.param(400, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(600)]),
]


@pytest.mark.parametrize("runs", SIZES)
@pytest.mark.parametrize("reported", [False, True], ids=["decided", "reported_between"])
async def test_a_run_goes_on(database: Database, figures: Figures, *, reported: bool, runs: int):
    connection = await database.connect()
    before = await deadlocks(connection)
    with planes(database.url, 2) as (first, second):
        numbers = iter(range(runs))
        lanes = [decide_pairs(first, second, numbers, reported=reported) for _ in range(LANES)]
        replies = [reply for lane in await asyncio.gather(*lanes) for reply in lane]
    found = Counter(dict(await connection.fetch("SELECT status, count(*) FROM executions GROUP BY status")))
    assert found == {"succeeded" if reported else "running": runs}
    assert {reply.status for reply in replies} == {200}
    processed = [reply for reply in replies if reply.body["status"] == "processed"]
    assert reported or len(processed) == 2 * runs
    assert await lost(connection, ((reply.body["approval_id"], "approved") for reply in processed)) == []
    assert await broken(connection) == []
    after = await deadlocks(connection)
    assert after == before
    await connection.close()
    title = "two approvals and an agent's report at once" if reported else "two approvals at once"
    figures(title, runs=runs, left_waiting=found["waiting"], deadlocks=after - before, applied=len(processed))


async def decide_pairs(first: Plane, second: Plane, numbers: Iterator[int], *, reported: bool) -> list[Reply]:
    """Ask twice in each run and approve both at once, each on its own server; maybe report the run's end too."""
    replies: list[Reply] = []
    async with wires(first.url, second.url, first.url) as (left, right, agent):
        for number in numbers:
            run = f"run-{number}"
            await ask(left, run, "code")
            await ask_more(left, run, "data")
            pair = (left, right) if number % 2 else (right, left)
            busy = [*pair, agent] if reported else [*pair]
            Webhook(run, "code", "approved").send(pair[0])
            if reported:
                agent.send("POST", f"{API}/executions/{run}/status", encode({"status": "succeeded"}))
            Webhook(run, "data", "approved").send(pair[1])
            replies += await asyncio.gather(*(wire.reply() for wire in busy))
    return [reply for reply in replies if reply.status != 200 or "decision" in reply.body]


async def deadlocks(connection: "asyncpg.Connection[Any]") -> int:
    """How often PostgreSQL broke a deadlock in this database; whoever met one has left, so it has been counted."""
    counted: int = await connection.fetchval(
        "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    )
    return counted
