"""What one key's own allowance lets be called is called for the node that the key owns now, and for no other."""

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import pytest

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES, Key
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.workers.dispatcher import Dispatcher
from controlplane.workers.launcher import Launcher
from tests.app import Api, in_process, problem
from tests.postgres import Database
from tests.receiver import Receiver

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
REFUSED = "callback_url_refused: its host leads to a loopback address, which HOLDSHORT_CALLBACK_ALLOW must allow"


@pytest.fixture
async def strict(database: Database) -> AsyncIterator[Api]:
    """An application that calls nothing of this machine, whose workers a test runs step by step."""
    async with in_process(database, open_mode=False) as made:
        yield made


class Owner:
    """Somebody with a key."""

    def __init__(self, api: Api, key: Key, text: str) -> None:
        self.api = api
        self.key = key
        self._headers = {"X-API-Key": text}

    async def post(self, path: str, body: Any) -> httpx.Response:
        return await self.api.client.post(f"/api/v1{path}", json=body, headers=self._headers)

    async def asks(self, url: str | None, node_id: str = "node-1") -> httpx.Response:
        """A run of the node that asks, and is told at a URL."""
        started = await self.post("/executions", {"node_id": node_id, "execution_id": f"run-of-{node_id}"})
        assert started.status_code in {200, 201}, started.text
        body = {"approval_request_id": "q"} | ({} if url is None else {"callback_url": url})
        return await self.post(f"/executions/run-of-{node_id}/request-approval", body)

    async def registers(self, base_url: str, node_id: str = "node-1") -> httpx.Response:
        node = {
            "node_id": node_id,
            "base_url": base_url,
            "reasoners": [{"name": "work"}],
            "features": {"replay": True, "fence": True},
        }
        return await self.post("/nodes/register", node)


async def owner(api: Api, *allow: str, node_id: str | None = "node-1", **more: Any) -> Owner:
    wanted = Wanted(name="agents", scopes=("agent",), node_id=node_id, allow=allow, **more)
    async with api.runtime.transaction() as conn:
        return Owner(api, *await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))


async def reviewer(api: Api) -> Owner:
    async with api.runtime.transaction() as conn:
        wanted = Wanted(name="desk", scopes=("review",))
        return Owner(api, *await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))


async def decided(api: Api, reply: httpx.Response) -> None:
    assert reply.status_code == 200, reply.text
    path = f"/approvals/{reply.json()['approval_id']}/decision"
    assert (await (await reviewer(api)).post(path, {"decision": "approved"})).status_code == 200


async def deliver(api: Api) -> None:
    dispatcher = Dispatcher(api.runtime)
    await dispatcher.step()
    await dispatcher.drain()


async def launch(api: Api) -> None:
    launcher = Launcher(api.runtime)
    await launcher.step()
    await launcher.drain()


async def revoke(api: Api, key: Key) -> None:
    async with api.runtime.transaction() as conn:
        await access.revoke(conn, key.key_id, SETUP)


async def test_its_callbacks_are_sent(strict: Api, told: Receiver, sql: Any):
    node = await owner(strict, f"127.0.0.1:{told.port}")
    await decided(strict, await node.asks(told.url))
    await deliver(strict)
    assert await sql.fetchval("SELECT status FROM deliveries") == "delivered"
    assert len(told.got) == 1


async def test_what_it_does_not_name_is_refused_when_asked(strict: Api, told: Receiver):
    node = await owner(strict, f"127.0.0.1:{told.port}", "10.1.0.0/16:8001")
    for url in ("http://127.0.0.1:9/", "http://10.1.2.3/", "http://10.2.0.1:8001/", "http://169.254.169.254:8001/"):
        assert problem(await node.asks(url)) == (422, "callback_url_refused"), url
        assert problem(await node.registers(url)) == (422, "callback_url_refused"), url
    asked = await node.asks("http://10.1.2.3:8001/cb")
    moved = f"/approvals/{asked.json()['approval_id']}/callback"
    assert problem(await node.post(moved, {"callback_url": "http://10.2.0.1:8001/"})) == (422, "callback_url_refused")
    assert (await node.post(moved, {"callback_url": told.url})).status_code == 200


async def test_registering_a_node_allows_nothing(strict: Api, told: Receiver):
    bare = await owner(strict)
    unbound = await owner(strict, node_id=None)
    for each in (bare, unbound):
        reply = await each.registers(f"http://127.0.0.1:{told.port}", "node-1")
        assert problem(reply) == (422, "callback_url_refused")


async def test_another_nodes_allowance_is_not_its_own(strict: Api, told: Receiver):
    await owner(strict, f"127.0.0.1:{told.port}")
    other = await owner(strict, node_id="node-2")
    assert problem(await other.asks(told.url, "node-2")) == (422, "callback_url_refused")


async def test_a_revoked_keys_allowance_ends(strict: Api, told: Receiver, sql: Any):
    node = await owner(strict, f"127.0.0.1:{told.port}")
    await decided(strict, await node.asks(told.url))
    await revoke(strict, node.key)
    await deliver(strict)
    row = await sql.fetchrow("SELECT status, attempts, last_error FROM deliveries")
    assert tuple(row) == ("pending", 1, REFUSED)
    assert told.got == []


async def test_an_expired_keys_allowance_ends(strict: Api, told: Receiver, sql: Any):
    node = await owner(strict, f"127.0.0.1:{told.port}", expires_in=timedelta(hours=1))
    await decided(strict, await node.asks(told.url))
    await sql.execute("UPDATE api_keys SET expires_at = clock_timestamp() WHERE key_id = $1", node.key.key_id)
    await deliver(strict)
    assert await sql.fetchval("SELECT last_error FROM deliveries") == REFUSED
    assert told.got == []


async def test_a_node_that_was_moved_has_what_its_new_owner_may(strict: Api, told: Receiver, sql: Any):
    node = await owner(strict, f"127.0.0.1:{told.port}")
    await decided(strict, await node.asks(told.url))
    without = await owner(strict)
    async with strict.runtime.transaction() as conn:
        await access.move_node(conn, "node-1", without.key.key_id, SETUP)
    await deliver(strict)
    assert await sql.fetchval("SELECT last_error FROM deliveries") == REFUSED
    async with strict.runtime.transaction() as conn:
        await access.move_node(conn, "node-1", node.key.key_id, SETUP)
    await sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
    await deliver(strict)
    assert await sql.fetchval("SELECT status FROM deliveries") == "delivered"


async def test_its_runs_are_given_to_it_until_the_key_is_revoked(strict: Api, told: Receiver, sql: Any):
    node = await owner(strict, f"127.0.0.1:{told.port}")
    assert (await node.registers(f"http://127.0.0.1:{told.port}")).status_code == 201
    assert (await node.post("/execute/async/node-1.work", {"input": {}})).status_code == 202
    await launch(strict)
    assert [request.path for request in told.got] == ["/reasoners/work"]
    assert (await node.post("/execute/async/node-1.work", {"input": {}})).status_code == 202
    await revoke(strict, node.key)
    await launch(strict)
    assert len(told.got) == 1
    errors = await sql.fetch("SELECT last_error FROM dispatches WHERE last_error IS NOT NULL")
    assert [row["last_error"] for row in errors] == [REFUSED]


async def test_two_nodes_at_one_moment_have_each_its_own(strict: Api, told: Receiver, sql: Any):
    """Both are claimed in one statement and sent to one address: one of them may."""
    for name, allow in (("node-1", (f"127.0.0.1:{told.port}",)), ("node-2", ())):
        each = await owner(strict, *allow, node_id=name)
        reply = await each.asks(None, name)
        # As if it had been asked while the operator's list allowed it.
        await sql.execute(
            "UPDATE approvals SET callback_url = $1 WHERE approval_id = $2", told.url, reply.json()["approval_id"]
        )
        await decided(strict, reply)
    await deliver(strict)
    rows = await sql.fetch(
        "SELECT a.node_id, d.status, d.last_error FROM deliveries d JOIN approvals a USING (approval_id) ORDER BY 1"
    )
    assert [tuple(row) for row in rows] == [("node-1", "delivered", None), ("node-2", "pending", REFUSED)]
    assert len(told.got) == 1
