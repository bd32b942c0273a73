"""Whatever an agent's key sends, by whatever route: no approval of its own or of another is decided by it."""

import itertools
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from controlplane.domain import signatures
from controlplane.domain.access import Access
from tests.app import Api, in_process, problem
from tests.figures import Figures
from tests.postgres import Database
from tests.security.callers import Caller, Route, caller, count, routes

CALLBACK_SECRET = "the-secret-that-the-agent-chose"
DECIDED = ("approved", "rejected", "request_changes")
Body = Callable[[str], dict[str, Any]]


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application that stands open until there is a key."""
    async with in_process(database) as made:
        yield made


def named(approval: str) -> dict[str, Any]:
    """Every spelling of every id that a body may carry."""
    ids = {"approval_id": approval, "approval_request_id": "q", "requestId": "q", "round": 1}
    return ids | {"execution_id": "run-1", "executionId": "run-1", "node_id": "node-1", "id": "node-1"}


def worded(word: str) -> Body:
    """The same word in every field that there is."""

    def body(approval: str) -> dict[str, Any]:
        fields = ("decision", "action", "approval_status", "new_status", "feedback", "reason", "message", "type")
        said = dict.fromkeys(fields, word) | {"response": {"decision": word, "action": word}}
        return named(approval) | said | {"decided_by": "desk", "status": "running", "name": "s", "previous": ""}

    return body


def enveloped(approval: str) -> dict[str, Any]:
    data = {"requestId": "q", "executionId": "run-1", "response": {"decision": "approved"}}
    return {"id": "evt_1", "type": "request.completed", "createdAt": "2026-01-01T00:00:00Z", "data": data | named("")}


def reported(approval: str) -> dict[str, Any]:
    """An end of the run that says that it was approved."""
    said = {"status": "succeeded", "result": {"decision": "approved", "approval_status": "approved"}}
    return named(approval) | said | {"error_details": {"reason": "approval_granted"}, "reason": "approval_granted"}


def served(approval: str) -> dict[str, Any]:
    """What routes of the wire take: a decision stands wherever one could be put."""
    steps = {"name": "s", "occurrence": 1, "previous": "", "result": {"decision": "approved"}, "message": "approved"}
    waits = {"approval_ids": [approval], "wait": 0, "execution_ids": ["run-1"], "instance_id": "node-1-1"}
    held = {"executions": [{"execution_id": "run-1", "fence": 0}], "base_url": "http://127.0.0.1:9/node-1"}
    asked = {"on_expiry": "resume", "payload": {"decision": "approved"}, "expires_in_hours": 1 / 3600}
    called = {"callback_url": "http://127.0.0.1:9/api/v1/webhooks/approval-response", "input": "approved"}
    return named(approval) | steps | waits | held | asked | called | {"decision": "approved", "status": "approved"}


BODIES: Mapping[str, Body] = {
    "approved": worded("approved"),
    "alias": worded("approve"),
    "rejected": worded("rejected"),
    "changes": worded("request_changes"),
    "expired": worded("expired"),
    "envelope": enveloped,
    "report": reported,
    "every_field": served,
}


def signed(raw: bytes) -> dict[str, str]:
    """Every signature header there is, made with the secret that the agent gave its own callback."""
    standard = signatures.sign_standard(CALLBACK_SECRET, raw, webhook_id="msg_1", timestamp=1_800_000_000)
    return {
        "X-Webhook-Signature": signatures.sign_hex(CALLBACK_SECRET, raw),
        "X-Hub-Signature-256": f"sha256={signatures.sign_hex(CALLBACK_SECRET, raw)}",
        "webhook-id": "msg_1",
        "webhook-timestamp": "1800000000",
        "webhook-signature": standard,
        "X-Execution-ID": "run-1",
    }


async def attack(agent: Caller, route: Route, approval: str, body: Body) -> int:
    names = {"execution_id": "run-1", "approval_id": approval, "node_id": "node-1", "target": "node-1.work"}
    path = route.at(**names, delivery_id="d", unique_id="f-1")
    raw = json.dumps(body(approval)).encode()
    path += "?from=never" if route.path.endswith("/events") else ""
    return (await agent(route.method, path, raw, **signed(raw))).status_code


async def test_no_route_and_no_body_lets_an_agent_decide(api: Api, figures: Figures):
    # The owner of the node last, as its own words may end the run.
    agents = [await caller(api, "agent"), await caller(api, "agent", node_id="node-2")]
    agents.append(await caller(api, "agent", node_id="node-1"))
    await agents[-1].registers("node-1")
    await agents[0].registers("node-3")
    answers: Counter[int] = Counter()
    ends: Counter[str] = Counter()
    approval = await asked_anew(api, agents[-1])
    for route, (name, body) in itertools.product(routes(), BODIES.items()):
        given = [await attack(agent, route, approval, body) for agent in agents]
        answers.update(given)
        status = await status_of(api, approval)
        ends[status] += 1
        assert status not in DECIDED, (route, name)
        if route.purpose in {Access.REVIEW, Access.ADMIN}:
            assert given == [403] * len(agents), route
        if status != "pending":
            approval = await asked_anew(api, agents[-1])
    assert (
        await count(api, "SELECT count(*) FROM history WHERE type = ANY ($1)", [f"approval.{w}" for w in DECIDED]) == 0
    )
    assert 500 not in answers
    assert ends["pending"] > ends["withdrawn"] > 0
    figures(
        "agents that try to decide",
        routes=len(routes()),
        bodies=len(BODIES),
        requests=answers.total(),
        decided=0,
        answers=" ".join(f"{status}x{many}" for status, many in sorted(answers.items())),
        **ends,
    )


async def asked_anew(api: Api, owner: Caller) -> str:
    """A run whose agent lets it go on when nobody answers, with all that an agent may choose of a question."""
    await erase_runs(api)
    chosen = {"callback_url": "http://127.0.0.1:9/", "callback_secret": CALLBACK_SECRET, "on_expiry": "resume"}
    return await owner.asks("run-1", "node-1", payload={"to": "delete"}, **chosen)


async def erase_runs(api: Api) -> None:
    """Begin anew; history stays."""
    connection = await api.runtime.engine.raw_connection()
    driver: Any = connection.driver_connection
    for table in ("deliveries", "approvals", "notes", "steps", "dispatches", "executions"):
        await driver.execute(f"DELETE FROM {table}")
    connection.close()


async def status_of(api: Api, approval: str) -> str:
    async with api.runtime.engine.connect() as connection:
        row = await connection.exec_driver_sql("SELECT status FROM approvals WHERE approval_id = $1", (approval,))
        return str(row.scalar_one())


async def test_letting_a_question_expire_approves_nothing_whatever_was_agreed(api: Api):
    agent, reviewer = await caller(api, "agent"), await caller(api, "review")
    for on_expiry, status in (("cancel", "cancelled"), ("resume", "running")):
        approval = await agent.asks(f"run-{on_expiry}", "node-1", on_expiry=on_expiry)
        ended = await agent.must("POST", f"/approvals/{approval}/expire")
        assert (ended["status"], ended["response"]["decision"], ended["execution_status"]) == (
            "expired",
            "expired",
            status,
        )
        late = await reviewer("POST", f"/approvals/{approval}/decision", {"decision": "approved"})
        assert problem(late) == (409, "already_decided")
    wanted = {"approval_request_id": "other", "on_expiry": "approve"}
    refused = await agent("POST", "/executions/run-resume/request-approval", wanted)
    assert problem(refused) == (422, "invalid_field")


async def test_a_question_does_not_change_after_it_was_shown(api: Api):
    agent, reviewer = await caller(api, "agent"), await caller(api, "review")
    first = {"title": "Pay 5", "description": "five", "payload": {"pay": 5}, "expires_in_hours": 1}
    approval = await agent.asks("run-1", "node-1", **first)
    shown = await reviewer.must("GET", f"/approvals/{approval}")
    path = "/executions/run-1/request-approval"
    again = {"approval_request_id": "q", "title": "Pay 5000", "description": "much", "expires_in_hours": 100}
    for changed in ({"payload": {"pay": 5000}}, {"payload": {"pay": 5}, "on_expiry": "resume"}, {}):
        assert problem(await agent("POST", path, again | changed)) == (409, "approval_request_conflict")
    await agent.must(
        "POST", path, again | {"payload": {"pay": 5}, "decided_by": "desk", "approval_request_url": "http://x/"}
    )
    assert await reviewer.must("GET", f"/approvals/{approval}") == shown
    await reviewer.must("POST", f"/approvals/{approval}/decision", {"decision": "approved"})
    for changed in ({"payload": {"pay": 5000}}, {"payload": {"pay": 5}, "on_expiry": "resume"}):
        assert problem(await agent("POST", path, again | changed)) == (409, "approval_request_conflict")


async def test_a_question_asked_anew_is_not_decided_by_an_answer_to_the_one_before(api: Api):
    agent = await caller(api, "agent")
    approval = await agent.asks("run-1", "node-1")
    answer = {"requestId": "q", "executionId": "run-1", "decision": "approved"}
    await agent.must("POST", f"/approvals/{approval}/withdraw")
    assert (await api.webhook(answer)).json()["status"] == "already_processed"
    second = await agent.must("POST", "/executions/run-1/request-approval", {"approval_request_id": "q", "round": 2})
    assert (second["status"], second["round"]) == ("pending", 2)
    assert (await api.webhook(answer)).json()["approval_id"] == approval
    assert (await agent.must("GET", f"/approvals/{second['approval_id']}"))["status"] == "pending"


async def test_an_answer_that_names_a_run_is_not_taken_by_another_agents(api: Api):
    thief, agent = await caller(api, "agent"), await caller(api, "agent")
    answer = {"requestId": "q", "executionId": "run-1", "decision": "approved"}
    assert (await api.webhook(answer)).json()["status"] == "parked"
    stolen = await thief.asks("run-2", "node-2")
    assert (await thief.must("GET", f"/approvals/{stolen}"))["status"] == "pending"
    meant = await agent.asks("run-1", "node-1")
    assert (await agent.must("GET", f"/approvals/{meant}"))["status"] == "approved"
