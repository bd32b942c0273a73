import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from holdshort import (
    AlreadyDecided,
    ApprovalFilter,
    AsyncClient,
    Client,
    HoldshortError,
    InvalidField,
    NotAuthorised,
    NotFound,
    Question,
    Registration,
    RequestIdUsed,
    Verdict,
)
from holdshort._seals import Lock
from holdshort.webhooks import sign

from tests.contract.planes import SECRET, Plane

Do = Callable[..., Awaitable[Any]]
Name = Callable[[str], str]
NO_ROUTE = {"send", "close", "aclose", "events", "feedback_events"}


class Walker:
    """Calls a client's methods by name, in a thread when it blocks, and keeps which."""

    def __init__(self, client: AsyncClient | Client) -> None:
        self._client = client
        self.called: set[str] = set()

    async def __call__(self, method: str, /, *args: Any, **kwargs: Any) -> Any:
        self.called.add(method)
        function = getattr(self._client, method)
        if isinstance(self._client, AsyncClient):
            return await function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)

    def unvisited(self) -> set[str]:
        public = {name for name, _ in inspect.getmembers(type(self._client), callable) if not name.startswith("_")}
        return public - NO_ROUTE - self.called

    async def events(self, **which: Any) -> list[str]:
        """The types of an execution's events up to its end."""
        if isinstance(self._client, AsyncClient):
            return await _until_the_end(self._client, **which)
        return await asyncio.to_thread(_read_until_the_end, self._client, **which)


async def _until_the_end(client: AsyncClient, **which: Any) -> list[str]:
    seen = []
    async for event in client.events(**which):
        seen.append(event.type)
        if event.type == "execution.succeeded":
            break
    return seen


def _read_until_the_end(client: Client, **which: Any) -> list[str]:
    seen = []
    for event in client.events(**which):
        seen.append(event.type)
        if event.type == "execution.succeeded":
            break
    return seen


@pytest.fixture(params=[AsyncClient, Client])
async def do(request: pytest.FixtureRequest, plane: Plane) -> AsyncIterator[Walker]:
    made = request.param(plane.url)
    yield Walker(made)
    if isinstance(made, AsyncClient):
        await made.aclose()
    else:
        made.close()


async def test_every_method_reaches_its_route(do: Walker, fresh: Name):
    run, node = fresh("run"), fresh("node")
    await runs(do, run, node)
    await questions(do, run, node)
    await answers(do, run)
    await ends(do, run)
    await outside(do, run, node)
    await steps(do, run, node)
    await nodes(do, node)
    await short_lived(do, run)
    assert do.unvisited() == set()
    seen = await do.events(execution_id=run)
    assert (seen[0], seen[-1]) == ("execution.created", "execution.succeeded")


async def runs(do: Do, run: str, node: str) -> None:
    started = await do("create_execution", node, run, reasoner="work", input={"x": [1, None]}, run_id="r")
    assert (started.status, started.input, started.reasoner, started.run_id) == (
        "running",
        {"x": [1, None]},
        "work",
        "r",
    )
    assert (await do("create_execution", node, run)).execution_id == run
    assert (await do("get_execution", run)).node_id == node
    assert [each.execution_id for each in (await do("list_executions", node_id=node, limit=1)).executions] == [run]
    note = await do("add_note", run, "looking", note_id="n1", tags=["a"])
    assert (note["note_id"], note["message"], note["tags"]) == ("n1", "looking", ["a"])
    assert (await do("report_status", run, "running")).status == "running"


async def questions(do: Do, run: str, node: str) -> None:
    question = Question(approval_request_id="q", title="Title", payload={"amount": 1.5}, expires_in_hours=1)
    first = await do("request_approval", run, question)
    again = await do("request_approval", run, question, node_id=node)
    assert (again.approval_id, again.status, again.response) == (first.approval_id, "pending", None)
    status = await do("get_approval_status", run, approval_request_id="q", node_id=node, wait=0.05)
    assert (status.status, status.execution_status) == ("pending", "waiting")
    assert (await do("wait_for_approvals", [first.approval_id], wait=0.05)).approvals == []
    listed = (await do("list_approvals", ApprovalFilter(node_id=node, q="Title", order="deadline"))).approvals
    assert [(each.approval_id, each.payload) for each in listed] == [(first.approval_id, {"amount": 1.5})]
    shown = await do("get_approval", first.approval_id)
    assert [entry["type"] for entry in shown.history] == ["approval.requested"]
    moved = await do("set_callback", first.approval_id, "http://127.0.0.1:1/", callback_secret="s" * 16)
    assert moved.status == "pending"


async def answers(do: Do, run: str) -> None:
    first = await do("get_approval_status", run)
    verdict = Verdict(decision="approve", reason="fine", response=0, payload_digest=None, round=1)
    assert (await do("decide", first.approval_id, verdict)).status == "processed"
    with pytest.raises(AlreadyDecided) as refused:
        await do("decide", first.approval_id, Verdict(decision="rejected"))
    assert refused.value.details["approval_status"] == "approved"
    settled = (await do("wait_for_approvals", [first.approval_id], wait=5)).approvals
    assert [(each.response.feedback, each.response.data) for each in settled] == [("fine", 0)]
    await do("request_approval", run, Question(approval_request_id="second"))
    answered = await do("answer_execution", run, Verdict(decision="request_changes"), approval_request_id="second")
    assert (answered.decision, answered.new_status) == ("request_changes", "running")


async def ends(do: Do, run: str) -> None:
    third = await do("request_approval", run, Question(approval_request_id="third"))
    assert (await do("withdraw", third.approval_id)).status == "withdrawn"
    fourth = await do("request_approval", run, Question(approval_request_id="fourth", on_expiry="resume"))
    assert (await do("expire", fourth.approval_id)).status == "expired"
    assert (await do("expire", third.approval_id)).status == "withdrawn"
    assert (await do("report_status", run, "succeeded", result=[True])).result == [True]
    other = f"{run}-2"
    await do("create_execution", "node", other)
    assert (await do("cancel_execution", other, reason="why not")).status_reason == "why not"


async def outside(do: Do, run: str, node: str) -> None:
    other = f"{run}-3"
    await do("create_execution", node, other)
    await do("request_approval", other, Question(approval_request_id="hook", callback_url="http://127.0.0.1:1/"))
    body = json.dumps({"requestId": "hook", "executionId": other, "decision": "approved"}).encode()
    with pytest.raises(NotAuthorised):
        await do("send_webhook", body, sign(SECRET, body[:-1], scheme="body"))
    assert (await do("send_webhook", body, sign(SECRET, body, scheme="body"))).status == "processed"
    assert (await do("send_webhook", body, sign(SECRET, body, scheme="body"))).replayed
    early = json.dumps({"requestId": f"early-{run}", "decision": "approved"}).encode()
    assert (await do("send_webhook", early, sign(SECRET, early, scheme="body"))).status == "parked"
    assert f"early-{run}" in [each["approval_request_id"] for each in (await do("list_parked", limit=200)).parked]
    deliveries = (await do("list_deliveries", status="pending", limit=200)).deliveries
    (delivery,) = [each for each in deliveries if each["execution_id"] == other]
    assert (await do("redrive", delivery["delivery_id"]))["status"] == "pending"


async def steps(do: Do, run: str, node: str) -> None:
    other = f"{run}-4"
    await do("create_execution", node, other)
    kept = await do("keep_step", other, "analyse", {"pages": 3}, occurrence=1)
    again = await do("keep_step", other, "analyse", None, occurrence=1)
    assert (again.position, again.result) == (kept.position, {"pages": 3})
    page = await do("list_steps", other)
    assert ([each.name for each in page.steps], page.next_after) == (["analyse"], None)


async def short_lived(do: Do, run: str) -> None:
    lock, name = Lock(), f"q-{run}"
    asked = await do("ask_feedback", name, "Which?", lock.public_key, options=["A", "B"], execution_id=run)
    assert (asked.unique_id, asked.expires_at - asked.created_at) == (name, timedelta(seconds=300))
    assert (await do("feedback_answer", name, wait=0.05)).outcome == "pending"
    (shown,) = [each for each in (await do("pending_feedback")).requests if each.unique_id == name]
    assert (shown.message_for_user, shown.kind, shown.options) == ("Which?", "multiple_choice", ["A", "B"])
    assert (await do("submit_feedback", name, "b", submission_id="s")).status == "success"
    sealed = (await do("feedback_answer", name, wait=5)).sealed
    assert lock.open(name, sealed.enc, sealed.ct) == "B"
    assert (await do("end_feedback", name)).outcome == "answered"
    with pytest.raises(RequestIdUsed):
        await do("human_feedback", "Which?", name)


async def nodes(do: Do, node: str) -> None:
    coming = Registration(
        node_id=f"{node}-2",
        base_url="http://127.0.0.1:1",
        instance_id=f"{node}-instance",
        version="1.2",
        reasoners=[{"name": "work", "resume": "when_decided", "input_schema": {"type": "object"}}],
        features={"replay": True, "fence": True},
        lease_seconds=15,
        max_concurrent=3,
    )
    registered = await do("register_node", coming)
    assert (registered.lease_seconds, registered.heartbeat_seconds) == (15, 5)
    assert (await do("heartbeat", coming.node_id, coming.instance_id, status="draining")).lease_seconds == 15
    assert coming.node_id in [each.node_id for each in (await do("list_nodes", limit=200)).nodes]
    shown = await do("get_node", coming.node_id)
    assert (shown.version, shown.max_concurrent, shown.reasoners[0]["input_schema"]) == ("1.2", 3, {"type": "object"})
    assert [(each.instance_id, each.status) for each in shown.instances] == [(coming.instance_id, "draining")]
    queued = await do("execute_async", coming.node_id, "work", [1], idempotency_key=f"{node}-key")
    stands = await do("execute", coming.node_id, "work", [1], wait=0.05, idempotency_key=f"{node}-key")
    assert (stands.execution_id, stands.status, stands.status_reason) == (
        queued.execution_id,
        "queued",
        "waiting_for_node",
    )
    assert (await do("hand_back", coming.node_id, coming.instance_id, [(queued.execution_id, 1)])).handed_back == []
    assert (await do("shutdown_node", coming.node_id, coming.instance_id))["success"]
    await do("cancel_execution", queued.execution_id)


@pytest.mark.parametrize(
    ("method", "arguments", "error", "code"),
    [
        ("get_execution", ["never"], NotFound, "execution_not_found"),
        ("get_approval", ["apr_never"], NotFound, "approval_not_found"),
        ("get_approval_status", ["never"], NotFound, "no_approval_request"),
        ("redrive", ["dlv_never"], NotFound, "delivery_not_found"),
        ("create_execution", ["a node", "run"], InvalidField, "invalid_field"),
        ("get_node", ["never"], NotFound, "node_not_found"),
        ("heartbeat", ["never", "none"], NotFound, "node_not_found"),
        ("execute", ["never", "work"], NotFound, "node_not_found"),
        ("feedback_answer", ["never"], NotFound, "request_not_found"),
        ("submit_feedback", ["never", "x"], NotFound, "request_not_found"),
    ],
)
async def test_a_refusal_is_the_error_that_its_code_names(
    do: Walker, method: str, arguments: list[str], error: type[HoldshortError], code: str
):
    with pytest.raises(error) as refused:
        await do(method, *arguments)
    assert (type(refused.value), refused.value.code) == (error, code)
    assert refused.value.message
