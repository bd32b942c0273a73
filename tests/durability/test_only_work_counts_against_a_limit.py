"""A run's time limit counts what it works: no pause, no wait for a process; and it holds whatever the agent does."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.durability.agents import agents, lose
from tests.durability.conftest import Figures
from tests.durability.invariants import broken, settled
from tests.durability.journal import deeds
from tests.durability.plain_agent import ACCEPTED, Hold, PlainAgent, plain_agent, start
from tests.durability.plane import Webhook, planes, until
from tests.durability.wire import Wire
from tests.durability.working_agent import LIMIT_SECONDS
from tests.postgres import Database
from tests.receiver import hang

LIMIT = 3.0
LIMITED = {"name": "limited", "timeout_seconds": LIMIT}
LATE_SECONDS = 5.0


async def wait_longer_than(connection: Any, seconds: float) -> None:
    """Until the only question has been open for longer than this, by the database's clock."""
    asked = "SELECT clock_timestamp() > requested_at + make_interval(secs => $1) FROM approvals"
    await until(lambda: connection.fetchval(asked, seconds))


async def clock(connection: Any) -> tuple[str, float, float | None]:
    """The only run's status, the seconds it worked, and those until its limit passes (None: nothing is counted)."""
    row = await connection.fetchrow(
        "SELECT status, worked_seconds AS worked,"
        " extract(epoch FROM work_deadline - running_since)::float8 AS remaining FROM executions"
    )
    return row["status"], row["worked"], row["remaining"]


async def pause_for_long(connection: Any, wire: Wire, hold: Hold) -> float:
    """Let the run ask, and be answered when more than its whole limit has passed; the seconds it had worked."""
    assert (await hold.ask(wire)).status == 200
    status, worked, remaining = await clock(connection)
    assert (status, remaining) == ("waiting", None)
    assert 0 < worked < LIMIT
    await wait_longer_than(connection, LIMIT + 0.5)
    assert await clock(connection) == ("waiting", worked, None)
    assert (await Webhook(hold.execution_id, "q", "approved").post(wire)).body["status"] == "processed"
    return worked


async def test_a_pause_longer_than_the_limit_leaves_what_was_left(
    database: Database, connection: Any, figures: Figures
):
    with planes(database.url) as (plane,):
        async with plain_agent() as agent:
            wire = Wire(plane.url)
            await agent.register(wire, "plain", LIMITED)
            await start(wire, "limited")
            (hold,) = await agent.given(1)
            assert float(agent.told.got[0].headers["x-holdshort-time-left"]) == LIMIT
            worked = await pause_for_long(connection, wire, hold)
            assert await clock(connection) == ("running", worked, pytest.approx(LIMIT - worked, abs=1e-3))
            await until(lambda: connection.fetchval("SELECT status = 'timeout' FROM executions"))
            await until(lambda: settled(connection))
            late = await lateness(connection)
            check_told(agent, hold)
            await wire.close()
    assert await broken(connection) == []
    figures("limit of running time", seconds=LIMIT, worked_before_the_pause_s=worked, ended_late_s=late)


async def lateness(connection: Any) -> float:
    """How much longer than its limit the only run worked until it was ended for that."""
    row = await connection.fetchrow("SELECT status, status_reason, worked_seconds, limit_seconds FROM executions")
    assert (row["status"], row["status_reason"]) == ("timeout", "execution_timeout")
    late = float(row["worked_seconds"] - row["limit_seconds"])
    assert 0 <= late < LATE_SECONDS
    return late


def check_told(agent: PlainAgent, hold: Hold) -> None:
    """The agent was told to stop, under the fence that it has, and why."""
    got = agent.cancelled[-1]
    assert got.path == f"/_internal/executions/{hold.execution_id}/cancel"
    assert (got.headers["x-holdshort-fence"], got.body) == (str(hold.fence), {"reason": "execution_timeout"})


async def test_whoever_takes_the_run_over_has_what_was_left(database: Database, connection: Any):
    with planes(database.url) as (plane,):
        async with plain_agent() as first, plain_agent() as second:
            wire = Wire(plane.url)
            await first.register(wire, "first", LIMITED)
            await start(wire, "limited")
            (hold,) = await first.given(1)
            assert (await hold.ask(wire)).status == 200
            _, worked, _ = await clock(connection)
            await second.register(wire, "second", LIMITED)
            await lose(connection, "first")
            await until(lambda: connection.fetchval("SELECT instance_id IS NULL FROM executions"))
            await wait_longer_than(connection, LIMIT + 0.5)
            await Webhook(hold.execution_id, "q", "approved").post(wire)
            (again,) = await second.given(1)
            left = float(second.told.got[0].headers["x-holdshort-time-left"])
            assert left == pytest.approx(LIMIT - worked, abs=2e-3)
            assert (await again.report(wire)).status == 200
            await until(lambda: settled(connection))
            await wire.close()
    assert await connection.fetchval("SELECT status FROM executions") == "succeeded"
    assert await broken(connection) == []


async def test_an_agent_that_answers_nothing_does_not_keep_its_run_from_ending(
    database: Database, connection: Any, figures: Figures
):
    with planes(database.url) as (plane,):
        async with plain_agent() as agent:
            agent.told.answers = [hang(asyncio.Event())]
            wire = Wire(plane.url)
            await agent.register(wire, "plain", LIMITED | {"timeout_seconds": 1.0})
            await start(wire, "limited")
            (hold,) = await agent.given(1)
            await until(lambda: connection.fetchval("SELECT status = 'timeout' FROM executions"))
            late = await lateness(connection)
            await agent.told.wait_for(2, seconds=30)
            check_told(agent, hold)
            agent.told.answers = [ACCEPTED]
            await until(lambda: settled(connection))
            assert len(await agent.given(0)) == 1
            assert (await hold.report(wire, result="too late")).status == 200
            await wire.close()
    row = await connection.fetchrow("SELECT status, result #>> '{}' AS result FROM executions")
    assert (row["status"], row["result"]) == ("timeout", "too late")
    assert await broken(connection) == []
    figures("limit of an agent that answers nothing", ended_late_s=late, told=len(agent.cancelled))


@pytest.mark.parametrize(
    "runs",
    [pytest.param(20, id="quick"), pytest.param(400, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(300)])],
)
async def test_many_that_pass_their_limit_at_once_are_ended_in_time(
    database: Database, connection: Any, figures: Figures, runs: int
):
    """The agent takes them all, and never says another word."""
    with planes(database.url, 2) as served:
        async with plain_agent() as agent:
            wire = Wire(served[0].url)
            await agent.register(wire, "plain", LIMITED, max_concurrent=runs)
            for _ in range(runs):
                await start(wire, "limited")
            over = "SELECT count(*) = $1 FROM executions WHERE status_reason = 'execution_timeout'"
            await until(lambda: connection.fetchval(over, runs), seconds=90)
            await until(lambda: settled(connection), seconds=90)
            await wire.close()
    assert len(await agent.given(0)) == runs
    told = {got.headers["x-execution-id"]: got.body["reason"] for got in agent.cancelled}
    assert told == dict.fromkeys({hold.execution_id for hold in await agent.given(0)}, "execution_timeout")
    late = await connection.fetchval("SELECT max(worked_seconds - limit_seconds) FROM executions")
    assert 0 <= late < LATE_SECONDS
    assert await broken(connection) == []
    figures("limits that pass at once", runs=runs, told=len(told), slowest_ended_late_s=late)


async def test_a_program_has_its_time_after_a_long_pause_and_no_more(
    database: Database, connection: Any, tmp_path: Path
):
    """The real program: within its limit it ends well; frozen within its work it is ended, and told once it goes on."""
    with planes(database.url) as (plane,), agents(tmp_path, connection) as programs:
        program = await programs.start(plane.url)
        wire = Wire(plane.url)
        ids = [await start(wire, "limited", seconds=seconds) for seconds in (0.1, 600.0)]
        asked = "SELECT count(*) = 2 AND min(clock_timestamp() - requested_at) > make_interval(secs => $1)"
        await until(lambda: connection.fetchval(f"{asked} FROM approvals", LIMIT_SECONDS + 0.5))
        await Webhook(ids[0], "limited", "approved").post(wire)
        ended = "SELECT status IN ('succeeded', 'timeout', 'failed') FROM executions WHERE execution_id = $1"
        await until(lambda: connection.fetchval(ended, ids[0]))
        await Webhook(ids[1], "limited", "approved").post(wire)
        await until(lambda: begun(programs.reader.look(), ids[1]))
        program.freeze()
        await until(lambda: connection.fetchval(ended, ids[1]))
        program.thaw()
        await until(lambda: settled(connection))
        await until(lambda: left(programs.reader.look(), ids))
        await wire.close()
    ends = await connection.fetch("SELECT execution_id, status, status_reason FROM executions")
    found = {row["execution_id"]: (row["status"], row["status_reason"]) for row in ends}
    assert found == {ids[0]: ("succeeded", "execution_finished"), ids[1]: ("timeout", "execution_timeout")}
    how = {line["run"]: line["how"] for line in programs.reader.lines if line["at"] == "left"}
    assert how[ids[0]] == "returned"
    assert how[ids[1]] != "returned"
    assert await broken(connection) == []


async def begun(lines: list[dict[str, Any]], run: str) -> bool:
    return any(deed.run == run for deed in deeds(lines))


async def left(lines: list[dict[str, Any]], runs: list[str]) -> bool:
    return {line["run"] for line in lines if line["at"] == "left"} == set(runs)
