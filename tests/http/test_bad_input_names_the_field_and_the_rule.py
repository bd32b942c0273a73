"""Every field of every body, wrong in every way: always 4xx, and never a word of the decoder's."""

import json
from typing import Any, NamedTuple

import pytest

from tests.app import Api, problem
from tests.http.refusals import faults, send

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUL, HALF = "a\x00b", "a\ud800b"
NESTED: Any = []
for _ in range(70):
    NESTED = [NESTED]
DEEP = {"a": NESTED}

ASK = {"approval_request_id": "q-1"}
NOT_TEXT = [1, 1.5, True, [], ["a"], {}]
NOT_WHOLE = ["1", 1.5, True, [], {}, 0, -1, 2**31, 2**63, 10**30]


class Route(NamedTuple):
    """A route with a body that it takes, which a case then spoils."""

    path: str
    good: dict[str, Any]
    wrong: dict[str, list[Any]]
    required: tuple[str, ...] = ()


URLS = [
    *NOT_TEXT,
    "x",
    "ftp://a/b",
    "javascript:alert(1)",
    "//a/b",
    "http://",
    "http:///p",
    "http://a b/",
    "http://a/\n",
    "http://a:99999/",
    "http://a:x/",
    "http://a:0/",
    "http://[::1",
    "http://a\\@b/",
    "http://a/" + "x" * 2048,
]
CALLBACK_URLS = [*URLS, "", "http://u:p@a/", "http://u@a/"]
SECRETS = [*NOT_TEXT, "", "x" * 15, "x" * 257, "x" * 16 + "\n"]
NAMES = [*NOT_TEXT, "", "a b", "a/b", "a\n", "é", "x" * 129]
LABELS = [*NOT_TEXT, "a\n", "a\x7f", "x" * 129]
REQUEST_IDS = [*NOT_TEXT, "", " ", "a\n", "a\x85", "apr_1", "x" * 257]
REASONS = [*NOT_TEXT, "x" * 501]

ROUTES = [
    Route(
        "/executions/run-1/request-approval",
        ASK,
        {
            "approval_request_id": [*REQUEST_IDS, None],
            "round": NOT_WHOLE,
            "approval_request_url": URLS,
            "callback_url": CALLBACK_URLS,
            "callback_secret": SECRETS,
            "expires_in_hours": [-1, 0, 0.0001, "48", True, 1e9, 8760.1, [], {}, 10**300],
            "title": [*NOT_TEXT, "x" * 201],
            "description": [*NOT_TEXT, "x" * 20_001],
            "payload": ["x" * (256 * 1024)],
            "on_expiry": [*NOT_TEXT, "", "Cancel", "stop"],
            "decided_by": [*NOT_TEXT, "", "Desk", "desk\n", "-a", "a" * 33],
            "form": [{"kind": "x"}, 1, "x", False],
        },
        ("approval_request_id",),
    ),
    Route(
        "/approvals/{approval}/decision",
        {"decision": "approved"},
        {
            "feedback": NOT_TEXT,
            "reason": NOT_TEXT,
            "payload_digest": NOT_TEXT,
            "round": NOT_WHOLE,
            "approval_request_id": [*NOT_TEXT, "", "x" * 257],
        },
    ),
    Route(
        "/executions/run-1/approval-response",
        {"decision": "approved"},
        {"feedback": NOT_TEXT, "round": NOT_WHOLE, "approval_request_id": [*NOT_TEXT, "", "x" * 257]},
    ),
    Route(
        "/approvals/{approval}/callback",
        {"callback_url": "http://127.0.0.1:9/"},
        {"callback_url": [*CALLBACK_URLS, None], "callback_secret": SECRETS},
        ("callback_url",),
    ),
    Route(
        "/executions",
        {"node_id": "n"},
        {
            "node_id": [*NAMES, None, "executions"],
            "execution_id": NAMES,
            "reasoner": LABELS,
            "run_id": LABELS,
        },
        ("node_id",),
    ),
    Route(
        "/executions/run-1/status",
        {"status": "running"},
        {
            "status": [*NOT_TEXT, None, "", "finished", "run ning", "o\u212a", "x" * 65],
            "error": [1, 1.5, True, [], ["a"]],
            "reason": [*NOT_TEXT, "", "a b", "Late", "x" * 65, "late\n"],
        },
        ("status",),
    ),
    Route("/executions/run-1/cancel", {}, {"reason": REASONS}),
    Route(
        "/executions/run-1/notes",
        {"message": "m"},
        {
            "message": [*NOT_TEXT, None, "x" * 20_001],
            "note_id": NAMES,
            "tags": [1, "a", {}, None, [1], [None], ["a\n"], ["x" * 129], ["a"] * 51],
        },
        ("message",),
    ),
    Route(
        "/executions/run-1/steps",
        {"name": "s", "occurrence": 1, "previous": "", "result": None},
        {
            "name": [*NOT_TEXT, None, "", "a\n", "a\x7f", "a\x85", "a\u2028", "x" * 201],
            "occurrence": [*NOT_WHOLE, None],
            "previous": [*NOT_TEXT, "x" * 257],
        },
        ("name", "occurrence", "result"),
    ),
    Route(
        "/approvals/wait",
        {"approval_ids": ["apr_1"]},
        {
            "approval_ids": [1, "a", {}, None, [], [1], [""], ["x" * 65], ["a"] * 10_001],
            "wait": ["1", True, None, [], -1, 60.1, 1e300],
        },
        ("approval_ids",),
    ),
]
REASONERS = [
    1,
    "a",
    {},
    [1],
    [None],
    ["a"],
    [{}],
    [{"id": None}],
    *([{"id": name}] for name in NAMES),
    *([{"name": name}] for name in NAMES),
    *([{"id": "a", "timeout_seconds": seconds}] for seconds in (0, -1, "1", True, [], 365 * 86_400 + 1, 1e300)),
    *([{"id": "a", "resume": word}] for word in ("", "now", "At_start", 1, [], {})),
    [{"id": "a"}] * 1001,
]
ROUTES += [
    Route(
        "/nodes/register",
        {"node_id": "n", "base_url": "http://127.0.0.1:9"},
        {
            "node_id": [*NAMES, "executions"],
            "id": [*NAMES, "another"],
            "base_url": [*CALLBACK_URLS, None, "http://a/?x=1", "http://a/?", "http://a/#f", "http://a/#"],
            "version": LABELS,
            "instance_id": LABELS,
            "reasoners": REASONERS,
            "skills": REASONERS,
            "features": [1, "a", True, [], {"replay": 1}, {"replay": "true"}, {"fence": 0}, {"fence": []}],
            "lease_seconds": ["15", True, [], {}, 0, 0.9, -1, 3600.1, 1e300],
            "max_concurrent": [number for number in NOT_WHOLE if number != ""],
        },
        ("node_id", "base_url"),
    ),
    Route("/nodes/node-1/heartbeat", {}, {"instance_id": LABELS, "status": LABELS, "phase": LABELS}),
    Route("/nodes/node-1/shutdown", {}, {"instance_id": LABELS}),
]
BODY_OPTIONAL = ("cancel", "heartbeat", "shutdown")
CAPS_IN_MIB = dict.fromkeys(
    ["/executions", "/executions/run-1/status", "/executions/run-1/steps", "/nodes/register"], 8
)
BY_PATH = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.path)


@pytest.fixture(scope="module")
def api(shared_api: Api) -> Api:
    """One application for the whole file, as nothing here has an effect."""
    return shared_api


@pytest.fixture(scope="module")
def approval(shared_approval: str) -> str:
    return shared_approval


@BY_PATH
async def test_a_wrong_value_is_422_with_its_field(api: Api, approval: str, route: Route):
    path = route.path.replace("{approval}", approval)
    missed = []
    for field, values in route.wrong.items():
        for value in values:
            reply = await api.post(path, {**route.good, field: value})
            if reply.status_code != 422 or [each["field"] for each in faults(reply)] != [field]:
                missed.append((field, repr(value)[:60], reply.status_code, reply.text[:200]))
    assert missed == []


@BY_PATH
async def test_a_missing_field_is_named(api: Api, approval: str, route: Route):
    path = route.path.replace("{approval}", approval)
    for field in route.required:
        body = {name: value for name, value in route.good.items() if name != field}
        reply = await api.post(path, body)
        assert faults(reply) == [{"field": field, "rule": "is required"}]
        assert reply.status_code == 422


@BY_PATH
async def test_text_that_cannot_be_kept_is_refused_with_its_field(api: Api, approval: str, route: Route):
    path = route.path.replace("{approval}", approval)
    fields = {*route.wrong, *route.good, "decision", "response", "payload", "input", "result"}
    for field in fields:
        for value in (NUL, HALF, [NUL], {"a": [HALF]}, {NUL: 1}, DEEP):
            reply = await send(api, path, json.dumps({**route.good, field: value}).encode())
            assert problem(reply) == (400, "invalid_body"), (field, value, reply.text)
            assert [each["field"] for each in faults(reply)] == [field]


@BY_PATH
async def test_what_is_no_strict_json_object_is_refused(api: Api, approval: str, route: Route):
    path = route.path.replace("{approval}", approval)
    name = next(iter(route.wrong))
    refused = [
        b"{",
        b"nonsense",
        b"\xff\xfe{}",
        b'{"a": "\xed\xa0\x80"}',
        b"[" * 5000,
        b"[" * 100_000 + b"]" * 100_000,
        b'{"a":' * 5000,
        b'{"%s": 1, "%s": 2}' % (name.encode(), name.encode()),
        b'{"a": {"b": 1, "b": 1}}',
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e999}',
        b'{"a": 1e-999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 01}',
        b"{'a': 1}",
        b'{"a": 1,}',
    ]
    for raw in refused:
        reply = await send(api, path, raw)
        assert problem(reply) == (400, "invalid_body"), raw[:40]
        faults(reply)
    for raw in (b"[]", b'"a"', b"1", b"null", b"true"):
        reply = await send(api, path, raw)
        assert reply.status_code == 422
        assert faults(reply) == [{"field": "body", "rule": "must be a JSON object"}]


@BY_PATH
async def test_only_json_is_taken(api: Api, approval: str, route: Route):
    path = route.path.replace("{approval}", approval)
    raw = json.dumps(route.good).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/msgpack", "application/jsonx", ""):
        reply = await send(api, path, raw or b"{}", **{"Content-Type": kind})
        assert problem(reply) == (415, "unsupported_media_type")
    if not path.endswith(BODY_OPTIONAL):
        assert problem(await send(api, path, b"")) == (400, "invalid_body")


@BY_PATH
async def test_a_body_over_its_cap_is_413(api: Api, approval: str, route: Route):
    path = route.path.replace("{approval}", approval)
    cap = CAPS_IN_MIB.get(path, 1)
    # A report over its cap has an effect: it ends its run, which must not be the one that the other tests use.
    await api.start("run-4")
    path = path.replace("/run-1/status", "/run-4/status")
    reply = await send(api, path, b'{"a": "' + b"x" * (cap * 1024 * 1024) + b'"}')
    assert problem(reply) == (413, "body_too_large")
    assert reply.json()["limit_bytes"] == cap * 1024 * 1024


@pytest.mark.parametrize("path", ["/approvals/{approval}/decision", "/executions/run-1/approval-response"])
async def test_a_word_that_is_no_decision_never_decides(api: Api, approval: str, path: str):
    words = [
        "",
        " ",
        "yes",
        "not approved",
        "\u0430pprove",
        "approved\u00a0",
        "approved!",
        1,
        True,
        [],
        ["approved"],
        {},
    ]
    for word in words:
        reply = await api.post(path.replace("{approval}", approval), {"decision": word})
        assert problem(reply) == (400, "invalid_decision"), word
    for body in ({}, {"decision": None}):
        assert problem(await api.post(path.replace("{approval}", approval), body)) == (400, "decision_missing")
    assert problem(await api.decide(approval, "expired")) == (400, "invalid_decision")
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"


async def test_expires_in_hours_is_taken_as_defined(api: Api):
    await api.start("run-3")
    for number, hours in enumerate((0.001, 48, 48.5, 8760, 1 / 3600, None)):
        await api.ask(f"q-{number}", "run-3", expires_in_hours=hours)
    raw = b'{"approval_request_id": "q", "expires_in_hours": NaN}'
    reply = await send(api, "/executions/run-1/request-approval", raw)
    assert (reply.status_code, faults(reply)[0]["field"]) == (400, "expires_in_hours")


async def test_nothing_of_what_was_refused_is_kept(api: Api):
    await api.start("run-2")
    for body in ({**ASK, "round": 0}, {**ASK, "callback_url": "x"}, {}, {**ASK, "title": "x" * 201}):
        assert (await api.post("/executions/run-2/request-approval", body)).status_code == 422
    assert (await api.get("/approvals", execution_id="run-2")).json()["approvals"] == []
    assert (await api.get("/executions/run-2")).json()["status"] == "running"
