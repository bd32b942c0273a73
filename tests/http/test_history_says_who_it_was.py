"""Every row of history says who: of what kind, under which name and key, by which way, from which address."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from controlplane.domain import allow_list
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api, in_process
from tests.postgres import Database

Call = Callable[..., Awaitable[httpx.Response]]
SETUP = Actor(ActorKind.SYSTEM, "test", "test")
SCOPES = {"builder": ("agent",), "ada": ("review",), "root": ("admin",)}


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application that stands open to nobody."""
    async with in_process(database, open_mode=False, callback_allow=allow_list.parse("127.0.0.1")) as made:
        yield made


@pytest.fixture
async def callers(api: Api) -> dict[str, Call]:
    """What calls with a key of its own, by the names of these."""
    made = {}
    for name, scopes in SCOPES.items():
        async with api.runtime.transaction() as conn:
            wanted = Wanted(name=name, scopes=scopes)
            _, text = await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)
        made[name] = with_key(api, text)
    return made


def with_key(api: Api, text: str) -> Call:
    async def call(path: str, body: Any = None, method: str = "POST") -> httpx.Response:
        content = {"json": body or {}} if method == "POST" else {}
        reply = await api.client.request(method, f"/api/v1{path}", headers={"X-API-Key": text}, **content)
        assert reply.is_success, reply.text
        return reply

    return call


async def test_each_caller_is_named_with_key_and_address(api: Api, callers: dict[str, Call], database: Database):
    agent, reviewer, admin = callers["builder"], callers["ada"], callers["root"]
    await agent("/executions", {"node_id": "node-1", "execution_id": "run-1"})
    ask = {"approval_request_id": "q-1", "callback_url": "http://127.0.0.1:9/"}
    approval = (await agent("/executions/run-1/request-approval", ask)).json()["approval_id"]
    await agent("/executions/run-1/notes", {"note_id": "n1", "message": "hello"})
    await reviewer(f"/approvals/{approval}/decision", {"decision": "approved"})
    await agent("/executions/run-1/request-approval", {"approval_request_id": "q-2"})
    decided = await api.webhook({"requestId": "q-2", "executionId": "run-1", "decision": "rejected"})
    assert decided.status_code == 200
    sql = await database.connect()
    delivery_id = await sql.fetchval("SELECT delivery_id FROM deliveries")
    await admin(f"/deliveries/{delivery_id}/redrive")
    await agent("/executions", {"node_id": "node-1", "execution_id": "run-2"})
    await admin("/executions/run-2/cancel", {"reason": "enough"})
    ids = dict(await sql.fetch("SELECT name, key_id FROM api_keys"))
    found = await sql.fetch(
        "SELECT type, actor_kind, actor_name, actor_id, actor_via, actor_address FROM history"
        " WHERE type NOT LIKE 'key.%' ORDER BY seq"
    )
    await sql.close()
    who = {
        "agent": ("agent", "node-1", ids["builder"], "api", "127.0.0.1"),
        "ada": ("person", "ada", ids["ada"], "api", "127.0.0.1"),
        "root": ("person", "root", ids["root"], "api", "127.0.0.1"),
        "desk": ("sender", "desk", None, "webhook", "127.0.0.1"),
    }
    names = {each: name for name, each in who.items()}
    assert [(row["type"], names.get(tuple(row)[1:], tuple(row))) for row in found] == [
        ("node.owned", "agent"),
        ("execution.created", "agent"),
        ("approval.requested", "agent"),
        ("execution.waiting", "agent"),
        ("execution.note", "agent"),
        ("approval.approved", "ada"),
        ("execution.running", "ada"),
        ("approval.requested", "agent"),
        ("execution.waiting", "agent"),
        ("approval.rejected", "desk"),
        ("execution.cancelled", "desk"),
        ("delivery.redriven", "root"),
        ("execution.created", "agent"),
        ("execution.cancelled", "root"),
    ]


async def test_no_reply_tells_from_where_or_with_which_key(api: Api, callers: dict[str, Call], database: Database):
    agent, reviewer = callers["builder"], callers["ada"]
    await agent("/executions", {"node_id": "node-1", "execution_id": "run-1"})
    asked = await agent("/executions/run-1/request-approval", {"approval_request_id": "q-1"})
    approval = asked.json()["approval_id"]
    await reviewer(f"/approvals/{approval}/decision", {"decision": "approved"})
    sql = await database.connect()
    ids = [row["key_id"] for row in await sql.fetch("SELECT key_id FROM api_keys")]
    await sql.close()
    for call in callers.values():
        shown = (await call(f"/approvals/{approval}", method="GET")).text
        assert '"actor_name":"ada"' in shown
        assert not any(hidden in shown for hidden in (*ids, "actor_address", "actor_id"))
