"""Every route, without a key, with each kind of key, and with another node's: the table of scopes, and nothing more."""

import os
from collections.abc import AsyncIterator
from functools import reduce
from typing import Any

import httpx
import pytest
from litestar import get

from controlplane.app import create_app
from controlplane.domain.access import Access
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.http.routes import TABLE
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.settings import Settings
from tests.app import Api, in_process, problem
from tests.figures import Figures
from tests.postgres import Database

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
KEYS: dict[str, Wanted] = {
    "bound": Wanted(name="bound", scopes=("agent",), node_id="node-1"),
    "unbound": Wanted(name="unbound", scopes=("agent",)),
    "stranger": Wanted(name="stranger", scopes=("agent",), node_id="node-2"),
    "review": Wanted(name="review", scopes=("review",)),
    "admin": Wanted(name="admin", scopes=("admin",)),
}
SCOPE = {"bound": "agent", "unbound": "agent", "stranger": "agent", "review": "review", "admin": "admin"}
# As the specification's table says it, not as the code does.
ALLOWED: dict[Access, set[str]] = {
    Access.AGENT: {"agent"},
    Access.EXECUTE: {"agent"},
    Access.CANCEL: {"agent", "review", "admin"},
    Access.WITHDRAW: {"agent", "review"},
    Access.FEEDBACK: {"agent"},
    Access.REVIEW: {"review"},
    Access.READ: {"agent", "review", "admin"},
    Access.RUNS: {"agent", "review", "admin"},
    Access.ADMIN: {"admin"},
}
Texts = dict[str, str]


@pytest.fixture
async def guarded(database: Database) -> AsyncIterator[Api]:
    """An application that stands open until there is a key."""
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def texts(guarded: Api) -> Texts:
    """A key of each kind, as it was shown once."""
    made = {name: await make(guarded, wanted) for name, wanted in KEYS.items()}
    await guarded.runtime.settle_access()
    return made


async def make(api: Api, wanted: Wanted) -> str:
    async with api.runtime.transaction() as conn:
        return (await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))[1]


async def call(api: Api, method: str, path: str, key: str | None, body: Any = None) -> httpx.Response:
    headers = {} if key is None else {"X-API-Key": key}
    content = None if method == "GET" else b"{}" if body is None else body
    if content is not None:
        headers["Content-Type"] = "application/json"
    return await api.client.request(method, under(path), headers=headers, content=content)


def under(path: str) -> str:
    """A path as it is asked; most stand under one prefix."""
    return path if path.startswith("/api/") else f"/api/v1{path}"


def walk() -> list[tuple[str, str, Access]]:
    """Every method and path of the API, with what the table says it is for; ids are those of nothing."""
    names = {"{execution_id:str}": "run-1", "{approval_id:str}": "apr_0", "{delivery_id:str}": "dlv_0"}
    names |= {"{node_id:str}": "node-1", "{target:str}": "node-1.work", "/events": "/events?from=never"}
    names |= {"{unique_id:str}": "f-1"}
    found = []
    for purpose, handlers in TABLE.items():
        for handler in handlers:
            for path in sorted(handler.paths):
                named = reduce(lambda given, name: given.replace(name, names[name]), names, path)
                found += [(method, named, purpose) for method in handler.http_methods if method != "OPTIONS"]
    return found


def test_every_route_stands_in_the_table_and_is_for_somebody():
    app = create_app(Settings())
    routed = [handler for route in app.routes for handler in getattr(route, "route_handlers", [])]
    # What the framework adds by itself is refused to everybody, as nobody gave it a purpose.
    asked = [h for h in routed if "OPTIONS" not in h.http_methods and not h.fn.__module__.startswith("litestar.")]
    without = [handler.paths for handler in asked if "access" not in handler.opt]
    assert len(routed) >= 40
    assert without == []
    assert {purpose for _, _, purpose in walk()} == {*ALLOWED, Access.PUBLIC}


async def test_every_route_is_refused_without_a_key_and_to_every_wrong_scope(
    guarded: Api, texts: Texts, figures: Figures
):
    walked = 0
    for method, path, purpose in walk():
        if purpose is Access.PUBLIC:
            continue
        walked += 1
        assert problem(await call(guarded, method, path, None)) == (401, "not_authenticated"), path
        assert problem(await call(guarded, method, path, texts["admin"][:-1] + "!")) == (401, "invalid_key"), path
        for name, text in texts.items():
            reply = await call(guarded, method, path, text)
            if SCOPE[name] in ALLOWED[purpose]:
                assert reply.status_code not in {401, 500}, (name, path, reply.text)
                assert reply.status_code != 403 or reply.json()["error"] == "node_owned", (name, path, reply.text)
            else:
                assert problem(reply) == (403, "not_allowed"), (name, path)
    figures("access", routes_walked=walked, keys_tried_at_each=len(texts) + 2)
    assert walked >= 43


async def test_a_route_that_nobody_gave_a_purpose_is_refused_to_everybody(guarded: Api, texts: Texts):
    @get("/api/v1/forgotten")
    async def forgotten() -> str:
        return "seen"

    guarded.app.register(forgotten)
    for text in texts.values():
        assert problem(await call(guarded, "GET", "/forgotten", text)) == (403, "not_allowed")
    assert problem(await call(guarded, "GET", "/forgotten", None)) == (401, "not_authenticated")


async def test_an_agents_key_decides_by_no_route(guarded: Api, texts: Texts):
    approval = await asked(guarded, texts["bound"])
    body = b'{"decision": "approved"}'
    for path in (f"/approvals/{approval}/decision", "/executions/run-1/approval-response"):
        for name in ("bound", "unbound", "stranger", "admin"):
            assert problem(await call(guarded, "POST", path, texts[name], body)) == (403, "not_allowed")
    unsigned = await call(
        guarded, "POST", "/webhooks/approval-response", texts["bound"], b'{"requestId":"q","decision":"approved"}'
    )
    assert problem(unsigned) == (401, "missing_signature")
    assert (await call(guarded, "GET", f"/approvals/{approval}", texts["review"])).json()["status"] == "pending"
    assert (await call(guarded, "POST", f"/approvals/{approval}/decision", texts["review"], body)).status_code == 200


async def asked(api: Api, key: str, execution_id: str = "run-1", node_id: str = "node-1") -> str:
    """A run of a node that has asked; its approval."""
    started = f'{{"node_id": "{node_id}", "execution_id": "{execution_id}"}}'.encode()
    assert (await call(api, "POST", "/executions", key, started)).status_code == 201
    path = f"/executions/{execution_id}/request-approval"
    reply = await call(api, "POST", path, key, b'{"approval_request_id": "q"}')
    assert reply.status_code == 200, reply.text
    return str(reply.json()["approval_id"])


OF_A_RUN = [
    ("GET", "/executions/run-1", None),
    ("GET", "/executions/run-1/approval-status", None),
    ("GET", "/executions/run-1/steps", None),
    ("POST", "/executions/run-1/request-approval", b'{"approval_request_id": "mine"}'),
    ("POST", "/executions/run-1/status", b'{"status": "succeeded"}'),
    ("POST", "/executions/run-1/notes", b'{"message": "hello"}'),
    ("POST", "/executions/run-1/steps", b'{"name": "s", "occurrence": 1, "previous": "", "result": 1}'),
    ("POST", "/executions/run-1/cancel", b"{}"),
    ("GET", "/approvals/{approval}", None),
    ("POST", "/approvals/{approval}/withdraw", b"{}"),
    ("POST", "/approvals/{approval}/expire", b"{}"),
    ("POST", "/approvals/{approval}/callback", b'{"callback_url": "http://127.0.0.1:9/"}'),
]


@pytest.mark.parametrize("name", ["stranger", "unbound"])
async def test_another_nodes_runs_are_not_there(guarded: Api, texts: Texts, name: str):
    approval = await asked(guarded, texts["bound"])
    before = (await call(guarded, "GET", f"/approvals/{approval}", texts["review"])).json()
    for method, path, body in OF_A_RUN:
        reply = await call(guarded, method, path.format(approval=approval), texts[name], body)
        assert reply.status_code == 404, (path, reply.text)
    for path, member in (("/executions", "executions"), ("/approvals", "approvals"), ("/nodes", "nodes")):
        assert (await call(guarded, "GET", path, texts[name])).json()[member] == []
    waited = await call(
        guarded, "POST", "/approvals/wait", texts[name], f'{{"approval_ids": ["{approval}"], "wait": 0}}'.encode()
    )
    assert waited.json() == {"approvals": []}
    assert (await call(guarded, "GET", f"/approvals/{approval}", texts["review"])).json() == before


async def test_a_node_belongs_to_the_key_that_named_it_first(guarded: Api, texts: Texts):
    await asked(guarded, texts["unbound"], "run-9", "node-9")
    assert (await call(guarded, "GET", "/executions/run-9", texts["unbound"])).status_code == 200
    second = await make(guarded, Wanted(name="second", scopes=("agent",)))
    for key in (second, texts["bound"]):
        refused = await call(guarded, "POST", "/executions", key, b'{"node_id": "node-9"}')
        assert problem(refused) == (403, "node_owned")
    registering = b'{"id": "node-9", "base_url": "http://127.0.0.1:9", "reasoners": []}'
    assert problem(await call(guarded, "POST", "/nodes/register", second, registering)) == (403, "node_owned")
    assert (await call(guarded, "POST", "/nodes/register", texts["unbound"], registering)).status_code == 201
    for path in ("/nodes/node-9/heartbeat", "/nodes/node-9/shutdown"):
        assert problem(await call(guarded, "POST", path, second)) == (403, "node_owned")


async def test_whoever_starts_a_run_elsewhere_sees_and_cancels_it_and_nothing_else(guarded: Api, texts: Texts):
    registering = b'{"id": "node-1", "base_url": "http://127.0.0.1:9", "reasoners": [{"id": "work"}]}'
    assert (await call(guarded, "POST", "/nodes/register", texts["bound"], registering)).status_code == 201
    started = await call(guarded, "POST", "/execute/async/node-1.work", texts["stranger"], b'{"input": {}}')
    run = started.json()["execution_id"]
    assert (await call(guarded, "GET", f"/executions/{run}", texts["stranger"])).status_code == 200
    assert (await call(guarded, "GET", f"/executions/{run}", texts["unbound"])).status_code == 404
    report = await call(guarded, "POST", f"/executions/{run}/status", texts["stranger"], b'{"status": "succeeded"}')
    assert problem(report) == (404, "execution_not_found")
    assert problem(await call(guarded, "POST", f"/executions/{run}/cancel", texts["unbound"])) == (
        404,
        "execution_not_found",
    )
    cancelled = await call(guarded, "POST", f"/executions/{run}/cancel", texts["stranger"])
    assert cancelled.json()["status"] == "cancelled"


async def test_a_key_in_the_address_is_refused(guarded: Api, texts: Texts):
    reply = await guarded.client.get(f"/api/v1/executions?api_key={texts['admin']}")
    assert problem(reply) == (400, "key_in_url")
    assert texts["admin"] not in reply.text


async def test_both_headers_carry_a_key_and_two_that_differ_are_none(guarded: Api, texts: Texts):
    bearer = {"Authorization": f"bearer {texts['review']}"}
    assert (await guarded.client.get("/api/v1/executions", headers=bearer)).status_code == 200
    both = bearer | {"X-API-Key": texts["admin"]}
    assert problem(await guarded.client.get("/api/v1/executions", headers=both)) == (401, "invalid_key")


async def test_history_names_the_key_and_not_what_was_typed(guarded: Api, texts: Texts):
    approval = await asked(guarded, texts["bound"])
    body = b'{"decision": "approved", "feedback": "fine"}'
    await call(guarded, "POST", f"/approvals/{approval}/decision", texts["review"], body)
    seen = (await call(guarded, "GET", f"/approvals/{approval}", texts["review"])).json()["history"]
    assert [(row["type"], row["actor_kind"], row["actor_name"]) for row in seen] == [
        ("approval.requested", "agent", "node-1"),
        ("approval.approved", "person", "review"),
    ]
