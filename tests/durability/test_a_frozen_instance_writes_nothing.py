"""An instance that stands still while another one takes its runs over is refused when it goes on, whatever it says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.durability.agents import Agents, agents, lose
from tests.durability.conftest import Figures
from tests.durability.invariants import broken, settled
from tests.durability.journal import deeds, tally
from tests.durability.plain_agent import Hold, plain_agent, start
from tests.durability.plane import API, Webhook, planes, until
from tests.durability.wire import Reply, Wire
from tests.postgres import Database

LEASE_SECONDS = 60.0


@pytest.mark.parametrize(
    ("runs", "waited_for"),
    [
        pytest.param(3, False, id="quick"),
        pytest.param(12, True, id="long", marks=[pytest.mark.proof, pytest.mark.timeout(300)]),
    ],
)
async def test_a_process_that_was_stopped_and_goes_on(
    database: Database, connection: Any, figures: Figures, tmp_path: Path, runs: int, *, waited_for: bool
):
    """SIGSTOP within a step, past the lease; another instance does the step; SIGCONT, and the step ends there too."""
    gate = tmp_path / "gate"
    with planes(database.url) as (plane,), agents(tmp_path, connection) as programs:
        frozen = await programs.start(plane.url)
        wire = Wire(plane.url)
        ids = [await start(wire, "gated", gate=str(gate)) for _ in range(runs)]
        await until(lambda: at_work(programs, frozen.pid, runs))
        frozen.freeze()
        other = await programs.start(plane.url)
        if not waited_for:
            await programs.lose(frozen)
        seconds = await until(lambda: at_work(programs, other.pid, runs), seconds=LEASE_SECONDS)
        frozen.thaw()
        await asyncio.to_thread(gate.touch)
        await until(lambda: at_the_question(connection, runs))
        await until(lambda: refused(programs, frozen.pid, runs))
        for execution_id in ids:
            assert (await Webhook(execution_id, "go on", "approved").post(wire)).body["status"] == "processed"
        await until(lambda: settled(connection), seconds=60)
        ends = [(await wire.call("GET", f"{API}/executions/{each}")).body for each in ids]
        await wire.close()
    check(ends, programs, frozen.pid, other.pid)
    assert await broken(connection) == []
    figures("frozen past the lease", runs=runs, taken_over_s=seconds, refused_when_it_went_on=runs)


async def at_work(programs: Agents, pid: int, runs: int) -> bool:
    return sum(deed.pid == pid for deed in deeds(programs.reader.look())) == runs


async def at_the_question(connection: Any, runs: int) -> bool:
    return bool(await connection.fetchval("SELECT count(*) = $1 FROM approvals", runs))


async def refused(programs: Agents, pid: int, runs: int) -> bool:
    """Whether each run has ended in that process with the word that another one has it."""
    ends = [line for line in programs.reader.look() if line["at"] == "left" and line["pid"] == pid]
    assert {line["how"] for line in ends} <= {"StaleInstance"}
    return len(ends) == runs


def check(ends: list[dict[str, Any]], programs: Agents, frozen: int, other: int) -> None:
    """Each run ended once, with what the successor did."""
    lines = programs.reader.look()
    tokens = {deed.run: deed.token for deed in deeds(lines) if deed.pid == other}
    for end in ends:
        token = tokens[end["execution_id"]]
        assert (end["status"], end["result"]) == ("succeeded", {"first": token, "decision": "approved"})
    counted = tally(lines, [str(token) for token in tokens.values()], {frozen})
    # The two worked at once, as nobody can stop a frozen process; only the successor's work counts.
    assert [each for each in counted.wrong if not each.startswith("two at once")] == []
    assert counted.unsaved == len(ends)


async def test_each_word_under_an_earlier_fence_is_refused_and_changes_nothing(database: Database, connection: Any):
    with planes(database.url) as (plane,):
        async with plain_agent() as first, plain_agent() as second:
            wire = Wire(plane.url)
            await first.register(wire, "first")
            await start(wire)
            (before,) = await first.given(1)
            asked = await before.ask(wire)
            assert asked.status == 200
            await second.register(wire, "second")
            await lose(connection, "first")
            await until(lambda: connection.fetchval("SELECT instance_id IS NULL FROM executions"))
            await Webhook(before.execution_id, "q", "approved").post(wire)
            (after,) = await second.given(1)
            assert after == Hold(before.execution_id, before.fence + 1)
            await refuses_everything(connection, wire, before, asked.body["approval_id"])
            assert (await after.ask(wire)).body["status"] == "approved"
            assert (await after.report(wire, result="the successor's")).status == 200
            await until(lambda: settled(connection))
            await wire.close()
    assert await connection.fetchval("SELECT result #>> '{}' FROM executions") == "the successor's"
    assert await broken(connection) == []


async def refuses_everything(connection: Any, wire: Wire, stale: Hold, approval_id: str) -> None:
    """Each route that an agent speaks on answers 409, and writes nothing."""
    written = "SELECT count(*) FROM history"
    before = await connection.fetchval(written)
    callback = {"callback_url": "http://127.0.0.1:9/told"}
    replies: list[Reply] = [
        await stale.ask(wire),
        await stale.ask(wire, "another"),
        await stale.step(wire, "step"),
        await stale.note(wire),
        await stale.report(wire, "running"),
        await stale.report(wire, result="stale"),
        await stale.report(wire, "failed", error="stale"),
        await approval(wire, stale, approval_id, "expire", {}),
        await approval(wire, stale, approval_id, "callback", callback),
    ]
    assert [(reply.status, reply.body["error"]) for reply in replies] == [(409, "stale_instance")] * len(replies)
    assert await connection.fetchval(written) == before


async def approval(wire: Wire, hold: Hold, approval_id: str, route: str, body: Any) -> Reply:
    return await wire.call("POST", f"{API}/approvals/{approval_id}/{route}", body, hold.headers)
