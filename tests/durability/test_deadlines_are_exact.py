"""Thousands of approvals expire within one second while people decide: nothing late, nothing early, nothing twice."""

import asyncio
import time
from typing import Any, NamedTuple

import pytest

from tests.durability.conftest import Figures
from tests.durability.invariants import broken, lost
from tests.durability.plane import API, NODE, Webhook, ask_more, planes, until
from tests.durability.wire import Reply, Wire, in_lanes
from tests.postgres import Database

A_RUN = 10
LANES = 8
DECIDERS = 24
DECIDED_SHARE = 10
LATE_SECONDS = 5.0
AHEAD_SECONDS = 3.0
SPREAD_SECONDS = 1.0
# How long before (or after) its deadline somebody means to answer an approval; they take turns.
ANSWERED_SECONDS = (-2.0, -1.0, -0.5, -0.2, -0.05, 0.0, 0.03)


class Deadline(NamedTuple):
    """When the approvals of this proof expire: from this moment on (in Unix seconds), over one second."""

    at: float
    approvals: int

    def of(self, number: int) -> float:
        return self.at + SPREAD_SECONDS * number / self.approvals


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(300, id="quick"),
        pytest.param(20_000, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(900)]),
    ],
)
async def test_thousands_expire_in_one_second(database: Database, figures: Figures, count: int):
    connection = await database.connect()
    with planes(database.url, 2) as (first, second):
        await in_lanes(first.url, range(count // A_RUN), ask_for_run, lanes=LANES)
        deadline = await set_deadlines(connection, count)
        decided = await decide_around_the_deadline(second.url, deadline)
        drained = await until(lambda: none_pending(connection), seconds=60)
    late = await lateness(connection)
    applied = [reply.body for reply in decided if reply.body["status"] == "processed"]
    refused = [reply.body for reply in decided if reply.body["status"] == "already_processed"]
    assert {body["decision"] for body in refused} <= {"expired"}
    assert len(applied) + len(refused) == len(decided) == count // DECIDED_SHARE
    assert await lost(connection, [(body["approval_id"], "approved") for body in applied]) == []
    assert len(applied) + len(late) == count
    assert await broken(connection) == []
    await connection.close()
    p99, worst = late[int(len(late) * 0.99) - 1], late[-1]
    figures(
        "expiry within one second on two servers",
        approvals=count,
        expired=len(late),
        approved_in_time=len(applied),
        refused_as_late=len(refused),
        lateness_p50_s=late[len(late) // 2],
        p99_s=p99,
        max_s=worst,
        drained_after_the_last_answer_s=drained,
    )
    assert late[0] >= 0
    assert worst <= LATE_SECONDS


async def ask_for_run(wire: Wire, run: int) -> None:
    """Start a run and ask its share of questions, of which each may expire alone (`resume`)."""
    made = await wire.call("POST", f"{API}/executions", {"node_id": NODE, "execution_id": f"run-{run}"})
    assert made.status == 201, made
    for number in range(run * A_RUN, (run + 1) * A_RUN):
        await ask_more(wire, f"run-{run}", f"q-{number}", on_expiry="resume")


async def set_deadlines(connection: Any, count: int) -> Deadline:
    """Move every deadline to where it would be had all been asked in time, however long the asking took here."""
    at = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8 + $1::float8", AHEAD_SECONDS)
    await connection.execute(
        "UPDATE approvals SET expires_at = to_timestamp($1::float8 + $2 * substr(approval_request_id, 3)::int / $3)",
        at,
        SPREAD_SECONDS,
        float(count),
    )
    return Deadline(at, count)


async def decide_around_the_deadline(url: str, deadline: Deadline) -> list[Reply]:
    """Approve every tenth as close to its deadline as a sender can, before and after."""

    async def approve(wire: Wire, number: int) -> Reply:
        meant = ANSWERED_SECONDS[number // DECIDED_SHARE % len(ANSWERED_SECONDS)]
        await asyncio.sleep(max(deadline.of(number) + meant - time.time(), 0))
        reply = await Webhook(f"run-{number // A_RUN}", f"q-{number}", "approved").post(wire)
        assert reply.status == 200, reply
        return reply

    return await in_lanes(url, range(0, deadline.approvals, DECIDED_SHARE), approve, lanes=DECIDERS)


async def none_pending(connection: Any) -> bool:
    return not await connection.fetchval("SELECT EXISTS (SELECT FROM approvals WHERE status = 'pending')")


async def lateness(connection: Any) -> list[float]:
    """How long after its deadline each approval expired, in seconds, from the least."""
    rows = await connection.fetch(
        "SELECT extract(epoch FROM decided_at - expires_at)::float8 AS late FROM approvals WHERE status = 'expired'"
        " ORDER BY late"
    )
    return [row["late"] for row in rows]
