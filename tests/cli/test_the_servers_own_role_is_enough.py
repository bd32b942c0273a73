"""What `holdshort migrate --grants` prints is enough for all that servers do, and not enough to rewrite history."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from controlplane.storage import grants
from controlplane.storage.tables import metadata
from tests.app import Api, served
from tests.cli.processes import run, running
from tests.keys import make_keys, serving
from tests.owner import UNGUARD
from tests.postgres import Database
from tests.receiver import Receiver, receiver, reply
from tests.roles import runtime_role

KEPT = ("executions", "approvals", "deliveries", "notes", "steps", "dispatches", "nodes", "api_keys", "key_secrets")
WRITES = {
    "a row with a number of its own": "OVERRIDING SYSTEM VALUE VALUES (1, DEFAULT, DEFAULT",
    "a row of another transaction": "VALUES (DEFAULT, '1', DEFAULT",
    "a row of another time": "VALUES (DEFAULT, DEFAULT, now()",
}
FORBIDDEN = {
    "changing history": "UPDATE history SET actor_name = 'somebody else'",
    "changing one column": "UPDATE history SET data = '{}'",
    "deleting history": "DELETE FROM history",
    "emptying history": "TRUNCATE history",
    "changing seals": "UPDATE seals SET at = now()",
    "deleting seals": "DELETE FROM seals",
    "emptying seals": "TRUNCATE seals",
    "marking something as pruned": "INSERT INTO prunings (seal) VALUES (1)",
    "changing marks": "UPDATE prunings SET seal = 1",
    "deleting marks": "DELETE FROM prunings",
    "dropping the trigger": "DROP TRIGGER history_only_grows ON history",
    "turning the trigger off": UNGUARD,
    "replacing the guard": "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE sql AS ''",
    "making a trigger": "CREATE TRIGGER mine BEFORE INSERT ON history EXECUTE FUNCTION refuse_change()",
    "replicating": "SET session_replication_role = replica",
    "dropping history": "DROP TABLE history",
    "making a table": "CREATE TABLE mine (id int)",
    "setting the schema's revision": "UPDATE alembic_version SET version_num = '0001'",
    **{f"deleting {table}": f"DELETE FROM {table}" for table in KEPT},
    **{
        f"adding {what}": f"INSERT INTO history (seq, xid, at, type, actor_kind, actor_name, actor_via, data) {values},"
        " 'x', 'system', 'x', 'x', '{}')"
        for what, values in WRITES.items()
    },
}


@pytest.fixture
async def role(database: Database) -> AsyncIterator[Database]:
    """The database as the servers' role, which has what the command prints."""
    printed = run("migrate", "--grants", "servers")
    assert (printed.returncode, printed.stderr) == (0, "")
    async with runtime_role(database, printed.stdout) as made:
        yield made


async def run_is_dispatched_and_ends(api: Api, agent: Receiver) -> None:
    """A node registers, is given a run, does a step, keeps a note, reports; and goes."""
    agent.answers = [reply(202, b'{"status":"processing"}')]
    instance = {"instance_id": "i1", "base_url": f"http://127.0.0.1:{agent.port}"}
    node = {"node_id": "node-1", "version": "1", "reasoners": [{"name": "work"}], "features": {"replay": True}}
    assert (await api.post("/nodes/register", node | instance)).status_code == 201
    calling = asyncio.create_task(api.post("/execute/node-1.work?wait=30", {"input": {"a": 1}}))
    (got,) = await agent.wait_for(1)
    path = f"/executions/{got.headers['x-execution-id']}"
    step = {"name": "read", "occurrence": 1, "previous": None, "result": 1}
    assert (await api.post(f"{path}/steps", step)).status_code == 201
    assert (await api.post(f"{path}/notes", {"note_id": "n1", "message": "hello"})).status_code in {200, 201}
    assert (await api.post(f"{path}/status", {"status": "succeeded", "result": 1})).status_code == 200
    assert (await calling).json()["status"] == "succeeded"
    assert (await api.post("/nodes/node-1/heartbeat", {"instance_id": "i1"})).status_code == 200
    assert (await api.post("/nodes/node-1/shutdown", {"instance_id": "i1"})).status_code == 202


async def question_is_decided_and_told(api: Api, agent: Receiver) -> None:
    """A webhook that came too early, one that decides, and one that comes twice; each is told to the agent."""
    agent.got.clear()
    agent.answers = [reply(200)]
    early = {"requestId": "early", "executionId": "run-2", "decision": "rejected"}
    assert (await api.webhook(early)).status_code == 202
    await api.asked("early", "run-2", callback_url=agent.url)
    approval_id = await api.asked("q", "run-1", callback_url=agent.url, payload={"a": 1})
    answer = {"requestId": "q", "executionId": "run-1", "decision": "approved", "feedback": "fine"}
    for _ in range(2):
        assert (await api.webhook(answer)).status_code == 200
    assert {got.body["approval_id"] for got in await agent.wait_for(2)} >= {approval_id}
    await api.asked("late", "run-3", expires_in_hours=1 / 3600)
    ended = await api.get("/executions/run-3/approval-status", wait=20)
    assert ended.json()["status"] == "expired"
    assert (await api.post("/executions/run-1/cancel", {"reason": "enough"})).status_code == 200


async def test_the_main_roads_lead_through_and_history_is_sealed(database: Database, role: Database):
    owner = await database.connect()
    async with receiver() as agent, served(role) as api:
        await run_is_dispatched_and_ends(api, agent)
        await question_is_decided_and_told(api, agent)
        assert (await api.get("/approvals")).status_code == 200

        async def unsealed() -> int:
            found: int = await owner.fetchval(
                "SELECT count(*) - coalesce((SELECT sum(rows) FROM seals), 0) FROM history"
            )
            return found

        async with asyncio.timeout(10):
            while await unsealed():
                await asyncio.sleep(0.05)
    types = set(await owner.fetchval("SELECT array_agg(DISTINCT type) FROM history"))
    await owner.close()
    roads = {"execution.dispatched", "execution.step", "execution.note", "webhook.parked_used", "delivery.delivered"}
    assert roads <= types
    verified = run("audit", "verify", HOLDSHORT_DATABASE_URL=role.url)
    assert verified.returncode == 0, verified.stdout
    assert "a role that may only add to history" in verified.stdout


async def refused(connection: Any, statement: str) -> bool:
    try:
        await connection.execute(statement)
    except asyncpg.InsufficientPrivilegeError:
        return True
    return False


async def test_history_is_out_of_its_reach(database: Database, role: Database):
    mine = await role.connect()
    await mine.execute(
        "INSERT INTO history (type, actor_kind, actor_name, actor_via, data) VALUES ('x', 'system', 'x', 'x', '{}')"
    )
    for what, statement in FORBIDDEN.items():
        assert await refused(mine, statement), what
    assert await mine.fetchval("SELECT count(*) FROM history") == 1
    await mine.close()


def test_what_is_kept_for_ever_is_there():
    assert set(metadata.tables) > grants.KEPT > set(KEPT)


async def test_what_it_was_given_before_is_taken_from_it(database: Database):
    everything = 'GRANT ALL ON ALL TABLES IN SCHEMA public TO "servers"; GRANT UPDATE (data) ON history TO "servers";'
    printed = run("migrate", "--grants", "servers").stdout
    async with runtime_role(database, everything + printed) as role:
        mine = await role.connect()
        for statement in ("UPDATE history SET data = '{}'", "DELETE FROM seals", "DELETE FROM approvals"):
            assert await refused(mine, statement)
        await mine.close()


def started(database: Database) -> list[str]:
    with running("serve", "--port", "0", **serving(database)) as server:
        server.wait_for("listening")
        server.terminate()
        return [line for line in server.seen if "history" in line]


async def test_a_start_says_that_only_a_trigger_guards(database: Database, role: Database):
    await asyncio.to_thread(make_keys, database)
    (warning,) = await asyncio.to_thread(started, database)
    assert "history_guarded_by_trigger_only" in warning
    assert "holdshort migrate --grants" in warning
    assert await asyncio.to_thread(started, role) == []
    owner: Any = await database.connect()
    await owner.execute(UNGUARD)
    await owner.close()
    (error,) = await asyncio.to_thread(started, database)
    assert '"level": "error"' in error
    assert "history_is_not_guarded" in error
