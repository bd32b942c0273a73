import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from controlplane.runtime import turns
from tests.app import Api, in_process, problem, until
from tests.postgres import Database, wait_until_any_blocked


class Proxy:
    """A way to the database that can be cut, refused, and opened again."""

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def url(self) -> str:
        here = self._url.set(host="127.0.0.1", port=self.port, query={})
        return here.render_as_string(hide_password=False)

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _reach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = (
            self._url.query.get("host") or self._url.host,
            self._url.query.get("port") or self._url.port or 5432,
        )
        if isinstance(host, str) and host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(str(host), int(str(port)))

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            there_reader, there_writer = await self._reach()
            ends.append(there_writer)
            async with asyncio.TaskGroup() as group:
                group.create_task(pump(reader, there_writer))
                group.create_task(pump(there_reader, writer))
        except* ConnectionError:
            pass
        finally:
            for end in ends:
                end.transport.abort()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    raise ConnectionResetError


@asynccontextmanager
async def through_a_proxy(database: Database) -> AsyncIterator[tuple[Api, Proxy]]:
    proxy = Proxy(database.url)
    await proxy.open()
    try:
        async with in_process(database._replace(url=proxy.url), workers=True) as api:
            yield api, proxy
    finally:
        await proxy.cut()


def unavailable(reply: httpx.Response) -> bool:
    assert reply.headers["Retry-After"] == "1"
    return problem(reply) == (503, "database_unavailable")


CALLS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/approvals", None),
    ("GET", "/approvals/apr_1", None),
    ("GET", "/executions", None),
    ("GET", "/executions/run-1", None),
    ("GET", "/executions/run-1/approval-status?wait=1", None),
    ("GET", "/deliveries", None),
    ("GET", "/parked", None),
    ("GET", "/events", None),
    ("POST", "/executions", {"node_id": "n", "execution_id": "run-2"}),
    ("POST", "/executions/run-1/request-approval", {"approval_request_id": "q"}),
    ("POST", "/executions/run-1/approval-response", {"decision": "approved"}),
    ("POST", "/executions/run-1/status", {"status": "failed"}),
    ("POST", "/executions/run-1/cancel", {}),
    ("POST", "/executions/run-1/notes", {"message": "m"}),
    ("POST", "/approvals/wait", {"approval_ids": ["apr_1"], "wait": 1}),
    ("POST", "/approvals/apr_1/decision", {"decision": "approved"}),
    ("POST", "/approvals/apr_1/withdraw", {}),
    ("POST", "/approvals/apr_1/expire", {}),
    ("POST", "/approvals/apr_1/callback", {"callback_url": "http://127.0.0.1:9/"}),
    ("POST", "/deliveries/dlv_1/redrive", {}),
    ("POST", "/human-feedback", {"unique_id": "f-1", "message_for_user": "m", "wait": True}),
    ("GET", "/human-feedback/f-1/answer", None),
    ("DELETE", "/human-feedback/f-1", None),
    ("POST", "/api/human-feedback/submit", {"unique_id": "f-1", "response": "r"}),
    ("GET", "/api/human-feedback/pending", None),
]


async def test_every_route_says_503_while_it_is_away_and_all_comes_back_by_itself(database: Database):
    async with through_a_proxy(database) as (api, proxy):
        approval = await api.asked()
        await proxy.cut()
        for method, path, body in CALLS:
            reply = await api.client.request(method, path if path.startswith("/api/") else f"/api/v1{path}", json=body)
            assert unavailable(reply), path
        assert unavailable(await api.webhook({"requestId": "q-1", "decision": "approved"}))
        assert unavailable(await api.client.get("/health/ready"))
        assert (await api.client.get("/health/live")).status_code == 200
        await proxy.open()
        async with asyncio.timeout(10):
            while (await api.client.get("/health/ready")).status_code != 200:
                await asyncio.sleep(0.01)
        assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"
        assert (await api.webhook({"requestId": "q-1", "decision": "approved"})).json()["status"] == "processed"


async def test_a_wait_outlives_an_outage(database: Database):
    async with through_a_proxy(database) as (api, proxy):
        approval = await api.asked()
        waiting = asyncio.create_task(api.get("/executions/run-1/approval-status", wait=30))
        await until(lambda: any(wait._sleeper for waits in api.runtime.waits._waits.values() for wait in waits))
        await proxy.cut()
        assert unavailable(await api.client.get("/health/ready"))
        await proxy.open()
        async with in_process(database) as other:
            assert (await other.decide(approval)).status_code == 200
        assert (await asyncio.wait_for(waiting, 10)).json()["status"] == "approved"


async def test_a_backend_killed_in_the_middle_leaves_nothing_half_done(api: Api, sql: Any, database: Database):
    await api.start()
    watcher = await database.connect()
    for number in range(3):
        async with sql.transaction():
            await sql.execute("SELECT 1 FROM executions WHERE execution_id = 'run-1' FOR UPDATE")
            asking = asyncio.create_task(
                api.post("/executions/run-1/request-approval", {"approval_request_id": f"q-{number}"})
            )
            await wait_until_any_blocked(watcher)
            killed = (
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))"
            )
            assert await watcher.fetchval(killed, sql.get_server_pid()) == 1
            assert unavailable(await asking)
    await watcher.close()
    assert await sql.fetchval("SELECT count(*) FROM approvals") == 0
    assert await sql.fetchval("SELECT status FROM executions") == "running"
    assert await sql.fetchval("SELECT count(*) FROM history WHERE type LIKE 'approval%'") == 0
    assert (await api.ask())["status"] == "pending"


async def test_a_lock_that_is_held_for_long_is_a_503_after_a_second(api: Api, sql: Any):
    approval = await api.asked()
    async with sql.transaction():
        await sql.execute("SELECT 1 FROM executions WHERE execution_id = 'run-1' FOR UPDATE")
        assert unavailable(await api.decide(approval))
        assert (await api.client.get("/health/ready")).status_code == 200
    assert (await api.decide(approval)).json()["status"] == "processed"


async def test_looks_that_queue_behind_a_stuck_one_are_503_too(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.05)
    approval = await api.asked()
    async with api.runtime.look():
        assert unavailable(await api.get("/approvals"))
        assert (await api.decide(approval)).json()["status"] == "processed"
    assert (await api.get("/approvals")).status_code == 200
