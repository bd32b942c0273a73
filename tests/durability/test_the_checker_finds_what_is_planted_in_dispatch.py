"""Every invariant of dispatch is silent on what the server writes, and speaks when the rows are made to break it."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from tests.durability.invariants import broken
from tests.durability.invariants_of_dispatch import INVARIANTS
from tests.durability.plain_agent import PlainAgent, plain_agent, start
from tests.durability.plane import API, Webhook, planes, until
from tests.durability.wire import Wire
from tests.owner import UNGUARD
from tests.postgres import Database

AWAY = {"node_id": "away", "base_url": "http://127.0.0.1:9", "reasoners": [{"name": "queued"}]}
REASONERS = ("begun", "taken over", "waiting", "rejected", "queued", {"name": "late", "timeout_seconds": 0.2})


class Planted(NamedTuple):
    """Which invariant finds it, and the statements that do it, some of which the schema itself would refuse."""

    found: str
    statements: tuple[str, ...]


def run(reasoner: str) -> str:
    return f"(SELECT execution_id FROM executions WHERE reasoner = '{reasoner.replace(' ', '-')}')"


def dispatched(reasoner: str, fence: int) -> str:
    return f"type = 'execution.dispatched' AND execution_id = {run(reasoner)} AND data ->> 'fence' = '{fence}'"


TAKEN_OVER = run("taken over")
WITHOUT_CHECKS = "ALTER TABLE executions DROP CONSTRAINT executions_work_has_a_start"
PLANTED = {
    "a fence given twice": Planted(
        "D1", (f"UPDATE history SET data = jsonb_set(data, '{{fence}}', '1') WHERE {dispatched('taken over', 2)}",)
    ),
    "a fence left out": Planted(
        "D1", (f"UPDATE history SET data = jsonb_set(data, '{{fence}}', '3') WHERE {dispatched('taken over', 2)}",)
    ),
    "a dispatch without history": Planted(
        "D1", (f"UPDATE executions SET fence = 3 WHERE execution_id = {TAKEN_OVER}",)
    ),
    "held by whoever was given it before": Planted(
        "D2 (whoever", (f"UPDATE executions SET instance_id = 'first' WHERE execution_id = {TAKEN_OVER}",)
    ),
    "released from somebody else": Planted(
        "D2 (a run is released",
        (
            (
                "UPDATE history SET data = jsonb_set(data, '{instance_id}', '\"second\"')"
                f" WHERE type = 'execution.released' AND execution_id = {TAKEN_OVER}"
            ),
        ),
    ),
    "released twice": Planted(
        "D2 (a run is released",
        (
            (
                "INSERT INTO history (type, execution_id, actor_kind, actor_name, actor_via, data)"
                " SELECT type, execution_id, actor_kind, actor_name, actor_via, data FROM history"
                f" WHERE type = 'execution.released' AND execution_id = {TAKEN_OVER}"
            ),
        ),
    ),
    "taken over from an agent that was there": Planted(
        "D3", (f"DELETE FROM history WHERE type = 'execution.released' AND execution_id = {TAKEN_OVER}",)
    ),
    "running in nobody's hands": Planted(
        "D4",
        (f"UPDATE executions SET instance_id = NULL, running_since = NULL WHERE execution_id = {run('begun')}",),
    ),
    "running in the hands of the gone": Planted(
        "D4",
        (
            (
                "UPDATE instances SET status = 'gone', gone_at = now(), gone_reason = 'lease'"
                " WHERE instance_id = 'second'"
            ),
        ),
    ),
    "queued without a place": Planted(
        "D4", (f"UPDATE dispatches SET due_at = NULL WHERE execution_id = {run('queued')}",)
    ),
    "queued with no row at all": Planted("D4", (f"DELETE FROM dispatches WHERE execution_id = {run('queued')}",)),
    "an end that its code never saw": Planted(
        "D5", (f"UPDATE executions SET outcome_pending = true WHERE execution_id = {run('rejected')}",)
    ),
    "sent though it is over": Planted(
        "D6", (f"UPDATE dispatches SET due_at = now() WHERE execution_id = {run('rejected')}",)
    ),
    "a step left out": Planted("D7", (f"DELETE FROM steps WHERE position = 1 AND execution_id = {TAKEN_OVER}",)),
    "a step without history": Planted(
        "D7",
        (
            (
                "DELETE FROM history WHERE type = 'execution.step' AND data ->> 'position' = '1'"
                f" AND execution_id = {TAKEN_OVER}"
            ),
        ),
    ),
    "a step that is only history": Planted("D7", (f"DELETE FROM steps WHERE execution_id = {TAKEN_OVER}",)),
    "waiting that is counted": Planted(
        "D8",
        (
            WITHOUT_CHECKS,
            f"UPDATE executions SET running_since = now() WHERE execution_id = {run('waiting')}",
        ),
    ),
    "work that is not counted": Planted(
        "D8", (f"UPDATE executions SET running_since = NULL WHERE execution_id = {run('begun')}",)
    ),
    "running past its limit": Planted(
        "D9",
        (
            (
                "UPDATE executions SET limit_seconds = 1, work_deadline = now() - interval '6 s'"
                f" WHERE execution_id = {run('begun')}"
            ),
        ),
    ),
    "ended before its limit": Planted(
        "D9", (f"UPDATE executions SET worked_seconds = 0.1 WHERE execution_id = {run('late')}",)
    ),
}


async def rows_of_every_kind(database: Any, wire: Wire, agent: PlainAgent) -> None:
    """Runs at work, taken over, waiting, rejected, out of time; and one that nobody is there for."""
    names = [{"name": each.replace(" ", "-")} if isinstance(each, str) else each for each in REASONERS]
    await agent.register(wire, "first", *names)
    await start(wire, "taken-over")
    (before,) = await agent.given(1)
    assert (await before.step(wire, "one", previous="")).status == 201
    assert (await before.step(wire, "two", previous="one#1")).status == 201
    await agent.register(wire, "second", *names)
    (_, after) = await agent.given(2)
    assert (after.execution_id, after.fence) == (before.execution_id, 2)
    assert (await before.note(wire)).status == 409
    for reasoner in ("begun", "waiting", "rejected", "late"):
        await start(wire, reasoner)
    runs = await agent.given(6)
    assert [each.fence for each in runs] == [1, 2, 1, 1, 1, 1]
    named = dict(await database.fetch("SELECT execution_id, reasoner FROM executions"))
    holds = {named[each.execution_id]: each for each in runs}
    for reasoner in ("waiting", "rejected"):
        assert (await holds[reasoner].ask(wire, "deploy", decided_by="desk")).status == 200
    rejected = await Webhook(holds["rejected"].execution_id, "deploy", "rejected").post(wire)
    assert rejected.body["new_status"] == "cancelled"
    assert (await holds["rejected"].report(wire, result="cleaned up")).status == 200
    await wire.call("POST", f"{API}/nodes/register", AWAY)
    await wire.call("POST", f"{API}/nodes/away/shutdown")
    await start(wire, "queued", "away")
    out_of_time = "SELECT status = 'timeout' FROM executions WHERE reasoner = 'late'"
    await until(lambda: database.fetchval(out_of_time))
    told = "SELECT count(*) = 0 FROM dispatches WHERE kind = 'cancel' AND due_at IS NOT NULL"
    await until(lambda: database.fetchval(told))


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Any]:
    """To a database in which a real server has left runs of every kind."""
    opened = await database.connect()
    async with plain_agent() as agent:
        with planes(database.url) as (plane,):
            wire = Wire(plane.url)
            await rows_of_every_kind(opened, wire, agent)
            await wire.close()
    yield opened
    await opened.close()


async def test_each_planted_violation_is_found(connection: Any):
    assert await broken(connection) == []
    for what, planted in PLANTED.items():
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(UNGUARD)
        for statement in planted.statements:
            await connection.execute(statement)
        found = await broken(connection)
        await transaction.rollback()
        assert any(each.startswith(planted.found) for each in found), (what, found)
    assert await broken(connection) == []


def test_each_invariant_has_a_plant():
    labels = [f"{invariant.number} ({invariant.promise}" for invariant in INVARIANTS]
    assert [each for each in labels if not any(each.startswith(planted.found) for planted in PLANTED.values())] == []
