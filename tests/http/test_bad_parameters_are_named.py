"""Every parameter and every path that names something, wrong in every way: always 4xx, and it says which."""

import pytest

from tests.app import Api, problem
from tests.http.refusals import faults

pytestmark = pytest.mark.asyncio(loop_scope="module")

ASK = {"approval_request_id": "q-1"}
QUERIES: list[tuple[str, str, list[str]]] = [
    ("/approvals", "status", ["", "x", "Pending"]),
    ("/approvals", "order", ["", "x"]),
    ("/approvals", "limit", ["", "0", "-1", "201", "1.5", "x", "9" * 400]),
    (
        "/approvals",
        "cursor",
        ["", "x", "!!", "é", "a" * 1025, "WzEsMl0=", "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzE0OjAwIiwieCJd"],
    ),
    ("/approvals", "q", ["a\x00", "x" * 257]),
    ("/approvals", "node_id", ["\x00", "x" * 257]),
    ("/approvals", "execution_id", ["\x00", "x" * 257]),
    ("/approvals", "approval_request_id", ["\x00", "x" * 257]),
    ("/executions", "status", ["", "x"]),
    ("/executions", "stale", ["", "x", "2"]),
    ("/executions", "limit", ["0", "201", "x"]),
    ("/executions", "node_id", ["\x00", "x" * 257]),
    ("/executions", "cursor", ["", "x"]),
    ("/executions/run-1/steps", "after", ["", "-1", "1.5", "x", str(2**31), "9" * 400]),
    ("/executions/run-1/steps", "limit", ["", "0", "-1", "201", "x"]),
    ("/deliveries", "status", ["", "x"]),
    ("/deliveries", "limit", ["0", "201", "x"]),
    ("/deliveries", "cursor", ["", "x"]),
    ("/nodes", "limit", ["", "0", "201", "x"]),
    ("/nodes", "cursor", ["", "x"]),
    ("/parked", "limit", ["0", "201", "x"]),
    ("/parked", "cursor", ["", "x"]),
    ("/events", "from", ["", "x"]),
    ("/events", "types", ["\x00", "x" * 257]),
    ("/events", "execution_id", ["\x00", "x" * 257]),
    ("/executions/run-1/approval-status", "wait", ["", "abc", "nan", "inf", "-1", "61", "1e999", "-0.1"]),
    ("/executions/run-1/approval-status", "approval_request_id", ["\x00", "x" * 257]),
]


@pytest.fixture(scope="module")
def api(shared_api: Api) -> Api:
    """One application for the whole file, as nothing here has an effect."""
    return shared_api


@pytest.fixture(scope="module")
def approval(shared_approval: str) -> str:
    return shared_approval


async def test_a_wrong_parameter_is_422_with_its_name(api: Api, approval: str):
    missed = []
    for path, name, values in QUERIES:
        for value in values:
            reply = await api.get(path, **{name: value})
            if reply.status_code != 422 or [each["field"] for each in faults(reply)] != [name]:
                missed.append((path, name, value[:40], reply.status_code, reply.text[:200]))
    assert missed == []


async def test_a_wrong_last_event_id_is_422(api: Api):
    for value in (
        "x",
        "MS4x" * 100,
        "MQ==",
        "LTEuMA==",
        "?",
        "OTk5OTk5OTk5OTk5OTk5OTk5OTk5Ljk5",
    ):
        reply = await api.client.get("/api/v1/events", headers={"Last-Event-ID": value})
        assert (reply.status_code, faults(reply)[0]["field"]) == (422, "Last-Event-ID"), value


async def test_a_path_that_can_name_nothing_is_404(api: Api, approval: str):
    reply = None
    for value in (
        "%00",
        "a%0Ab",
        "%1B",
        "x" * 200,
        "%C3%A9",
        "%ED%A0%80",
        "%FF",
        "a%2Fb",
        "apr_%00",
        "apr_" + "x" * 300,
    ):
        for path in (
            f"/executions/{value}",
            f"/executions/{value}/approval-status",
            f"/executions/{value}/steps",
            f"/agents/{value}/executions/run-1/approval-status",
            f"/agents/node-1/executions/{value}/approval-status",
            f"/approvals/{value}",
            f"/nodes/{value}",
        ):
            reply = await api.client.get(f"/api/v1{path}")
            assert problem(reply)[0] == 404, (path, reply.text)
        for path, body in (
            (f"/executions/{value}/request-approval", ASK),
            (f"/agents/{value}/executions/run-1/request-approval", ASK),
            (f"/executions/{value}/approval-response", {"decision": "approved"}),
            (f"/executions/{value}/status", {"status": "failed"}),
            (f"/executions/{value}/cancel", {}),
            (f"/executions/{value}/notes", {"message": "m"}),
            (f"/executions/{value}/steps", {"name": "s", "occurrence": 1, "result": None}),
            (f"/approvals/{value}/decision", {"decision": "approved"}),
            (f"/approvals/{value}/withdraw", {}),
            (f"/approvals/{value}/expire", {}),
            (f"/approvals/{value}/callback", {"callback_url": "http://a/"}),
            (f"/deliveries/{value}/redrive", {}),
            (f"/nodes/{value}/heartbeat", {}),
            (f"/nodes/{value}/shutdown", {}),
        ):
            reply = await api.post(path, body)
            assert problem(reply)[0] == 404, (path, reply.text)
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"


async def test_other_methods_are_405_with_allow(api: Api):
    reply = await api.client.put("/api/v1/approvals")
    assert problem(reply) == (405, "method_not_allowed")
    assert "GET" in reply.headers["Allow"]
    assert problem(await api.client.get("/nowhere")) == (404, "not_found")
