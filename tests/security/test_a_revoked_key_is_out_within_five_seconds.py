"""A key that is revoked from the shell is out on every replica within 5 s: its calls, its streams and its waits."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import httpx
import pytest

from controlplane.domain import keys as rules
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.storage.engine import make_engine, transaction
from tests.app import Api, problem, served, until
from tests.cli.processes import LOOPBACK, run, running
from tests.figures import Figures
from tests.keys import make_keys, serving
from tests.postgres import Database
from tests.security.callers import SETUP, Caller, Key, caller, count

BOUND_SECONDS = 5.0
REVOKED = 4


class Replica(NamedTuple):
    """A real server."""

    url: str

    async def call(self, key: str, path: str = "/executions") -> int:
        async with httpx.AsyncClient(base_url=f"{self.url}/api/v1", timeout=70, trust_env=False) as client:
            return (await client.get(path, headers={"X-API-Key": key})).status_code


@pytest.fixture
def replicas(database: Database) -> Iterator[list[Replica]]:
    """Two servers on one database, the second without LISTEN."""
    make_keys(database)
    with ExitStack() as stack:
        environs = [{}, {"HOLDSHORT_LISTEN": "off"}]
        servers = [
            stack.enter_context(running("serve", "--port", "0", **serving(database) | LOOPBACK | more))
            for more in environs
        ]
        yield [Replica(server.wait_until_ready()) for server in servers]


async def held(opened: asyncio.Event, replica: Replica, key: str, path: str, body: Any = None) -> tuple[float, int]:
    """When a call that is held open came to its end, by this process's clock, and its status."""
    async with (
        httpx.AsyncClient(base_url=f"{replica.url}/api/v1", timeout=70, trust_env=False) as client,
        client.stream("GET" if body is None else "POST", path, json=body, headers={"X-API-Key": key}) as reply,
    ):
        async for _ in reply.aiter_bytes():
            opened.set()
    return time.monotonic(), reply.status_code


async def revoked(database: Database, key_id: str) -> float:
    """Revoke a key from the shell; when that was, by this process's clock and to the disadvantage of the server."""
    shell = ("keys", "revoke", key_id, "--json")
    done = await asyncio.to_thread(run, *shell, HOLDSHORT_DATABASE_URL=database.url)
    assert done.returncode == 0, done.stderr
    connection = await database.connect()
    try:
        since = "SELECT extract(epoch FROM clock_timestamp() - revoked_at) FROM api_keys WHERE key_id = $1"
        return time.monotonic() - float(await connection.fetchval(since, key_id))
    finally:
        await connection.close()


async def test_every_call_of_it_ends_on_every_replica(database: Database, replicas: list[Replica], figures: Figures):
    worst: dict[str, float] = {}
    for number in range(REVOKED):
        key = await kept(database)
        approval = await asked(replicas[0], key.text, f"node-{number}")
        streaming = asyncio.Event(), asyncio.Event()
        waiting = asyncio.Event()
        first, second = replicas
        calls = {
            "stream": held(streaming[0], first, key.text, "/events?from=now"),
            "stream without listen": held(streaming[1], second, key.text, "/events?from=now"),
            "wait for any": held(waiting, first, key.text, "/approvals/wait", {"approval_ids": [approval], "wait": 60}),
            "status wait": held(waiting, second, key.text, f"/executions/run-{number}/approval-status?wait=60"),
            "execute": held(waiting, first, key.text, f"/execute/node-{number}.work?wait=60", {"input": 1}),
        }
        tasks = {name: asyncio.create_task(call) for name, call in calls.items()}
        async with asyncio.timeout(30):
            await asyncio.gather(*(each.wait() for each in streaming))
        assert [await replica.call(key.text) for replica in replicas] == [200, 200]
        begun = await revoked(database, key.key_id)
        for place, replica in enumerate(replicas):
            while await replica.call(key.text) != 401:
                assert time.monotonic() - begun < BOUND_SECONDS
            note(worst, f"calls at replica {place + 1}", time.monotonic() - begun)
        for name, task in tasks.items():
            async with asyncio.timeout(BOUND_SECONDS):
                ended, status = await task
            assert ended - begun < BOUND_SECONDS, name
            assert status == (200 if name.startswith("stream") else 401), name
            note(worst, name, ended - begun)
    shown = {name.replace(" ", "_"): f"{seconds:.2f}s" for name, seconds in worst.items()}
    figures("revoked from the shell, the worst of each", keys=REVOKED, **shown)


def note(worst: dict[str, float], name: str, seconds: float) -> None:
    worst[name] = max(worst.get(name, seconds), seconds)


async def kept(database: Database) -> Key:
    engine = make_engine(database.url, 1)
    try:
        async with transaction(engine) as conn:
            wanted = Wanted(name="worker", scopes=("agent",))
            key, text = await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)
        return Key(key.key_id, text)
    finally:
        await engine.dispose()


async def asked(replica: Replica, key: str, node_id: str) -> str:
    run_id = node_id.replace("node", "run")
    async with httpx.AsyncClient(base_url=f"{replica.url}/api/v1", timeout=20, trust_env=False) as client:
        client.headers["X-API-Key"] = key
        base = {"id": node_id, "base_url": "http://127.0.0.1:9", "reasoners": [{"id": "work"}]}
        assert (await client.post("/nodes/register", json=base)).status_code == 201
        started = {"node_id": node_id, "execution_id": run_id}
        assert (await client.post("/executions", json=started)).status_code == 201
        reply = await client.post(f"/executions/{run_id}/request-approval", json={"approval_request_id": "q"})
        return str(reply.json()["approval_id"])


async def test_a_body_that_comes_slowly_is_not_taken_for_a_key_that_has_ended(database: Database):
    async with served(database) as api:
        agent, reviewer = await caller(api, "agent"), await caller(api, "review")
        approval = await agent.asks("run-1", "node-1")
        body = b'{"decision": "approved"}'
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(
            f"POST /api/v1/approvals/{approval}/decision HTTP/1.1\r\nHost: a\r\nX-API-Key: {reviewer.key.text}\r\n"
            f"Connection: close\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body[:-1]
        )
        # The guard has let it in once its key was read.
        await until(lambda: reviewer.key.key_id in api.runtime.keys._entries)
        await revoke_all(api)
        await until_refused(reviewer)
        writer.write(body[-1:])
        reply = await reader.read()
        writer.close()
        assert reply.startswith(b"HTTP/1.1 401"), reply
        assert await count(api, "SELECT count(*) FROM approvals WHERE status = 'pending'") == 1


async def revoke_all(api: Api) -> None:
    async with api.runtime.engine.begin() as connection:
        await connection.exec_driver_sql("UPDATE api_keys SET revoked_at = clock_timestamp()")


async def until_refused(who: Caller) -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        while (await who("GET", "/executions")).status_code != 401:
            await asyncio.sleep(0.01)


async def test_a_stream_shows_nothing_of_a_node_that_was_moved_to_another_key(database: Database):
    async with served(database) as api:
        first, second = await caller(api, "agent"), await caller(api, "agent")
        for node in ("kept", "moved"):
            await first.registers(node)
        presented = rules.read(first.key.text)
        assert presented is not None
        # Both are known to be its own when the stream is opened.
        owner = await api.runtime.keys.standing(presented, fresh=True)
        assert owner is not None
        assert owner.nodes == {"kept", "moved"}
        async with api.client.stream("GET", "/api/v1/events?from=now", headers={"X-API-Key": first.key.text}) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == ": holdshort"
            async with api.runtime.engine.begin() as connection:
                await connection.exec_driver_sql(
                    "UPDATE node_owners SET key_id = $1 WHERE node_id = 'moved'", (second.key.key_id,)
                )
            async with asyncio.timeout(BOUND_SECONDS):
                while len((await first.must("GET", "/nodes"))["nodes"]) > 1:
                    await asyncio.sleep(0.01)
            await second.asks("run-1", "moved")
            await first.asks("run-2", "kept")
            async with asyncio.timeout(10):
                events = [json.loads((await line_after(lines, "data: "))[6:]) for _ in range(2)]
        assert [each["execution_id"] for each in events] == ["run-2"] * 2
        assert problem(await first("GET", "/executions/run-1")) == (404, "execution_not_found")


async def line_after(lines: AsyncIterator[str], prefix: str) -> str:
    while not (line := await anext(lines)).startswith(prefix):
        pass
    return line


async def test_it_is_refused_wherever_it_stands_in_a_request(database: Database):
    async with served(database, workers=False) as api:
        admin = await caller(api, "admin")
        text = admin.key.text
        assert rules.read(text) is not None
        await revoke_all(api)
        await until_refused(admin)
        for headers in (
            {"X-API-Key": text},
            {"Authorization": f"Bearer {text}"},
            {"Authorization": f"BEARER  {text}"},
        ):
            reply = await api.client.get("/api/v1/executions", headers=headers)
            assert problem(reply) == (401, "invalid_key")
