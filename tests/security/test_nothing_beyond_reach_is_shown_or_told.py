"""What is another's is not there: the answer, its order and its time are those of what does not exist."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.app import Api, in_process, problem
from tests.figures import Figures
from tests.http.walk import PUBLIC_KEY
from tests.postgres import Database
from tests.security.callers import Caller, Route, caller, count, routes

NOWHERE = {"execution_id": "run-0", "approval_id": "apr_0", "node_id": "node-0", "delivery_id": "dlv_0"}
NOWHERE["unique_id"] = "f-0"
# A body that its route takes, bodies that it refuses at different points, and none at all.
WHOLE: dict[str, Any] = {
    "approval_request_id": "q",
    "callback_url": "http://127.0.0.1:9/",
    "decision": "approved",
    "status": "succeeded",
    "message": "m",
    "name": "s",
    "occurrence": 1,
    "previous": "",
    "result": 1,
    "instance_id": "node-1-1",
    "executions": [],
}
BODIES: list[bytes | dict[str, Any]] = [
    WHOLE,
    {},
    b"[]",
    b"{",
    b"",
    WHOLE | {"payload": {"other": 1}, "round": 1, "on_expiry": "resume"},
    WHOLE | {"round": 7},
    dict.fromkeys(WHOLE, 7),
]
FENCES: list[dict[str, str]] = [{}, {"X-Holdshort-Fence": "1"}, {"X-Holdshort-Fence": "x"}]


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application that stands open until there is a key."""
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def owner(api: Api) -> Caller:
    return await caller(api, "agent", node_id="node-1")


@pytest.fixture
async def stranger(api: Api) -> Caller:
    """Another agent, who has a node and a run of its own."""
    made = await caller(api, "agent")
    await made.asks("run-2", "node-2")
    return made


async def told(
    stranger: Caller, route: Route, ids: dict[str, str], body: Any, fence: dict[str, str]
) -> tuple[int, str]:
    """An answer without what was asked for and without its own id."""
    reply = await stranger(route.method, route.at(**ids, target="x"), body, **fence)
    text = reply.text.replace(str(reply.json().get("request_id")), "REQUEST")
    for name, value in ids.items():
        text = text.replace(value, name)
    return reply.status_code, text


async def test_every_route_answers_of_anothers_as_of_what_does_not_exist(
    api: Api, owner: Caller, stranger: Caller, figures: Figures
):
    await owner.registers("node-1")
    pending = await owner.asks("run-1", "node-1", callback_url="http://127.0.0.1:9/")
    ended = await owner.asks("run-3", "node-1")
    reviewer = await caller(api, "review")
    await reviewer.must("POST", f"/approvals/{ended}/decision", {"decision": "rejected"})
    before = [await reviewer.must("GET", f"/approvals/{each}") for each in (pending, ended)]
    for number, mine in enumerate(("f-1", "f-3")):
        asked = {"unique_id": mine, "message_for_user": "m", "public_key": PUBLIC_KEY}
        await owner.must("POST", "/human-feedback", asked)
        if number:
            submitted = {"unique_id": mine, "response": "r"}
            await reviewer.must("POST", "/api/human-feedback/submit", submitted)
    theirs = [
        {"execution_id": run, "approval_id": approval, "node_id": "node-1", "delivery_id": "dlv_1", "unique_id": mine}
        for run, approval, mine in (("run-1", pending, "f-1"), ("run-3", ended, "f-3"))
    ]
    compared = 0
    for route in routes():
        if not route.names & NOWHERE.keys():
            continue
        bodies = [None] if route.method == "GET" else BODIES
        for body, fence in itertools.product(bodies, FENCES if route.method != "GET" else FENCES[:1]):
            nothing = await told(stranger, route, NOWHERE, body, fence)
            # What agents log is dropped unread.
            assert nothing[0] >= 400 or route.path.endswith("/logs"), (route, nothing)
            for ids in theirs:
                assert await told(stranger, route, ids, body, fence) == nothing, (route, body, fence)
                compared += 1
    assert [await reviewer.must("GET", f"/approvals/{each}") for each in (pending, ended)] == before
    figures("another's things", answers_compared=compared, differing=0)


async def test_bodies_and_headers_that_name_anothers_run_find_nothing(api: Api, owner: Caller, stranger: Caller):
    approval = await owner.asks("run-1", "node-1")
    reviewer = await caller(api, "review")
    await reviewer.must("POST", f"/approvals/{approval}/decision", {"decision": "approved"})
    asked = await stranger.must("POST", "/executions/batch-status", {"execution_ids": ["run-1", "run-0"]})
    assert asked["run-1"] | {"execution_id": ""} == asked["run-0"] | {"execution_id": ""}
    waited = await stranger.must("POST", "/approvals/wait", {"approval_ids": [approval, "apr_0"], "wait": 0})
    assert waited == {"approvals": []}
    for run in ("run-1", "run-0"):
        note = await stranger("POST", "/executions/note", {"message": "m"}, **{"X-Execution-ID": run})
        assert problem(note) == (404, "execution_not_found")
        event = {"execution_id": run, "status": "succeeded"}
        assert (await stranger.must("POST", "/workflow/executions/events", event))["kept"] is False
    for path in ("/executions", "/workflow/executions"):
        reply = await stranger("POST", path, {"node_id": "node-2", "execution_id": "run-1"})
        assert problem(reply) == (409, "execution_exists")
        assert "node-1" not in reply.text
    assert (await owner.must("GET", "/executions/run-1"))["status"] == "running"
    assert await count(api, "SELECT count(*) FROM notes") == 0


async def test_lists_and_their_pages_hold_nothing_of_anothers(owner: Caller, stranger: Caller):
    await owner.registers("node-1")
    for number in range(3):
        await owner.asks(f"run-a{number}", "node-1")
        await stranger.asks(f"run-b{number}", "node-2")
    for path, member in (("/executions", "executions"), ("/approvals", "approvals")):
        seen, cursor = [], ""
        while True:
            page = await stranger.must("GET", f"{path}?limit=1{cursor}")
            seen += [each["node_id"] for each in page[member]]
            if page["next_cursor"] is None:
                break
            cursor = f"&cursor={page['next_cursor']}"
        assert seen == ["node-2"] * 4
        assert (await stranger.must("GET", f"{path}?node_id=node-1"))[member] == []
    assert (await stranger.must("GET", "/approvals?q=run-a"))["approvals"] == []
    assert (await stranger.must("GET", "/approvals?execution_id=run-a0"))["approvals"] == []


async def test_names_of_nodes_and_reasoners_are_told_to_their_own_only(api: Api, owner: Caller, stranger: Caller):
    await owner.registers("node-1", "secret_work")
    await stranger.registers("node-2", "open_work")
    for method, path in (("GET", "/nodes/node-1"), ("GET", "/nodes/node-0"), ("POST", "/execute/async/node-0.work")):
        reply = await stranger(method, path)
        assert problem(reply) == (404, "node_not_found")
        assert reply.json()["registered"] == ["node-2"]
    reply = await stranger("POST", "/execute/async/node-1.work")
    assert (*problem(reply), reply.json()["registered"]) == (404, "reasoner_not_found", [])
    reply = await owner("POST", "/execute/async/node-1.work")
    assert reply.json()["registered"] == ["secret_work"]
    admin = await caller(api, "admin")
    assert (await admin("GET", "/nodes/node-0")).json()["registered"] == ["node-1", "node-2"]


async def test_nobody_waits_for_or_holds_a_run_that_is_not_theirs(database: Database, owner: Caller, stranger: Caller):
    approval = await owner.asks("run-1", "node-1")
    connection = await database.connect()
    try:
        async with connection.transaction():
            await connection.execute("SELECT 1 FROM executions WHERE execution_id = 'run-1' FOR UPDATE")
            for path, body in (
                ("/executions/run-1/status", {"status": "succeeded"}),
                ("/executions/run-1/notes", {"message": "m"}),
                ("/executions/run-1/cancel", {}),
                (f"/approvals/{approval}/withdraw", {}),
                (f"/approvals/{approval}/callback", {"callback_url": "http://127.0.0.1:9/"}),
                (
                    "/nodes/node-2/hand-back",
                    {"instance_id": "i", "executions": [{"execution_id": "run-1", "fence": 0}]},
                ),
            ):
                # Whoever is let to wait for the lock is told 503 once its time is over.
                reply = await stranger("POST", path, body)
                assert reply.status_code in {200, 404}, (path, reply.text)
    finally:
        await connection.close()


async def test_an_instance_gives_back_its_own_nodes_runs_only(api: Api, owner: Caller, stranger: Caller):
    await owner.registers("node-1")
    await stranger.registers("node-2")
    run = (await stranger.must("POST", "/execute/async/node-1.work"))["execution_id"]
    held = "UPDATE executions SET status = 'running', instance_id = 'node-1-1', fence = 1 WHERE execution_id = $1"
    async with api.runtime.engine.begin() as connection:
        await connection.exec_driver_sql(held, (run,))
    body = {"instance_id": "node-1-1", "executions": [{"execution_id": run, "fence": 1}]}
    assert await stranger.must("POST", "/nodes/node-2/hand-back", body) == {"handed_back": []}
    assert problem(await stranger("POST", "/nodes/node-1/hand-back", body)) == (403, "node_owned")
    assert await owner.must("POST", "/nodes/node-1/hand-back", body) == {"handed_back": [run]}


async def test_an_idempotency_key_is_its_callers_own(api: Api, owner: Caller, stranger: Caller):
    await owner.registers("node-1")
    await stranger.registers("node-2")
    key = {"Idempotency-Key": "order-7"}
    first = await owner.must("POST", "/execute/async/node-1.work", {"input": {"card": 1}}, **key)
    for target in ("node-1.work", "node-2.work"):
        await stranger.must(
            "POST", f"/execute/async/{target}", {"input": {"card": 1}}, **key | {"Idempotency-Key": target}
        )
    second = await stranger.must("POST", "/execute/async/node-1.work", {"input": {"card": 1}}, **key)
    assert second["execution_id"] != first["execution_id"]
    for agent, run in ((owner, first), (stranger, second)):
        again = await agent.must("POST", "/execute/async/node-1.work", {"input": {"card": 1}}, **key)
        assert again["execution_id"] == run["execution_id"]
        other = await agent("POST", "/execute/async/node-1.work", {"input": {"card": 2}}, **key)
        assert (*problem(other), other.json()["execution_id"]) == (409, "idempotency_conflict", run["execution_id"])


async def test_a_parent_that_is_anothers_run_is_a_label_and_nothing_more(owner: Caller, stranger: Caller):
    await owner.asks("run-1", "node-1")
    await stranger.registers("node-2")
    parents = [{"X-Parent-Execution-ID": each} for each in ("run-1", "run-0")]
    children = [await stranger.must("POST", "/execute/async/node-2.work", {}, **each) for each in parents]
    assert [each.keys() for each in children] == [children[0].keys()] * 2
    for child in children:
        await stranger.must("POST", f"/executions/{child['execution_id']}/cancel")
    assert (await owner.must("GET", "/executions/run-1"))["status"] == "waiting"


async def test_who_started_a_run_elsewhere_sees_how_it_stands_and_nothing_of_the_work(
    api: Api, owner: Caller, stranger: Caller
):
    await owner.registers("node-1")
    run = (await stranger.must("POST", "/execute/async/node-1.work", {"input": 1}))["execution_id"]
    held = "UPDATE executions SET status = 'running', instance_id = 'node-1-1', fence = 1 WHERE execution_id = $1"
    async with api.runtime.engine.begin() as connection:
        await connection.exec_driver_sql(held, (run,))
    await owner.must("POST", f"/executions/{run}/steps", {"name": "s", "occurrence": 1, "previous": "", "result": "x"})
    await owner.must("POST", f"/executions/{run}/notes", {"message": "hush"})
    approval = (await owner.must("POST", f"/executions/{run}/request-approval", {"approval_request_id": "q"}))[
        "approval_id"
    ]
    seen = await stranger.must("GET", f"/executions/{run}")
    assert (seen["status"], seen["notes"], seen["approval_request_id"]) == ("waiting", [], None)
    assert len((await owner.must("GET", f"/executions/{run}"))["notes"]) == 1
    for path in (f"/executions/{run}/steps", f"/executions/{run}/approval-status", f"/approvals/{approval}"):
        assert (await stranger("GET", path)).status_code == 404, path
    report = {"status": "succeeded", "result": 1}
    assert problem(await stranger("POST", f"/executions/{run}/status", report)) == (404, "execution_not_found")


async def test_only_its_agent_marks_an_answer_as_read(api: Api, owner: Caller, stranger: Caller):
    # An answer that its agent has not read is told again, and no new round begins in its place.
    approval = await owner.asks("run-1", "node-1", callback_url="http://127.0.0.1:9/")
    reviewer = await caller(api, "review")
    await reviewer.must("POST", f"/approvals/{approval}/decision", {"decision": "request_changes"})
    for reader in (stranger, reviewer, await caller(api, "admin")):
        await reader.must("POST", "/approvals/wait", {"approval_ids": [approval], "wait": 0})
        await reader("GET", "/executions/run-1/approval-status")
    many = {"approval_ids": [approval, *(f"apr_{number}" for number in range(600))], "wait": 0}
    await stranger.must("POST", "/approvals/wait", many)
    assert await count(api, "SELECT count(*) FROM approvals WHERE read_at IS NOT NULL") == 0
    together = (stranger("POST", "/approvals/wait", {"approval_ids": [approval], "wait": 0}) for _ in range(5))
    await asyncio.gather(*together)
    assert await count(api, "SELECT count(*) FROM approvals WHERE read_at IS NOT NULL") == 0
    read = await owner.must("POST", "/approvals/wait", {"approval_ids": [approval], "wait": 0})
    assert [each["status"] for each in read["approvals"]] == ["request_changes"]
    assert await count(api, "SELECT count(*) FROM approvals WHERE read_at IS NOT NULL") == 1


async def test_a_wait_sees_a_node_that_has_become_its_callers_own_a_moment_ago(api: Api):
    agent, reviewer = await caller(api, "agent"), await caller(api, "review")
    # The key is read before it owns anything, and remembered for a while.
    assert (await agent.must("GET", "/nodes"))["nodes"] == []
    approval = await agent.asks("run-1", "node-1")
    await reviewer.must("POST", f"/approvals/{approval}/decision", {"decision": "approved"})
    for path in ("/executions/run-1/approval-status?wait=60", f"/approvals/{approval}"):
        assert (await agent.must("GET", path))["status"] == "approved"
    waited = await agent.must("POST", "/approvals/wait", {"approval_ids": [approval], "wait": 60})
    assert [each["approval_id"] for each in waited["approvals"]] == [approval]


async def test_history_says_which_reviewer_took_a_question_back(api: Api, owner: Caller):
    approvals = [await owner.asks(f"run-{number}", "node-1") for number in (1, 2)]
    reviewer = await caller(api, "review", name="ada")
    for who, approval in ((reviewer, approvals[0]), (owner, approvals[1])):
        await who.must("POST", f"/approvals/{approval}/withdraw")
    rows = [(await reviewer.must("GET", f"/approvals/{approval}"))["history"][-1] for approval in approvals]
    assert [(row["type"], row["actor_kind"], row["actor_name"]) for row in rows] == [
        ("approval.withdrawn", "person", "ada"),
        ("approval.withdrawn", "agent", "node-1"),
    ]
