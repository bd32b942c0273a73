"""However an address is written and with whatever method: it leads to its own route with its own rule, or nowhere."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import quote

import pytest

from controlplane.domain.access import Access
from tests.app import Api, in_process, problem, served
from tests.figures import Figures
from tests.postgres import Database
from tests.security.callers import caller, count, routes

DECISION = b'{"decision": "approved", "requestId": "q", "executionId": "run-1"}'
PREFIX = "/api/v1"


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    """An application that listens on a loopback port, so that nothing tidies an address on its way."""
    async with served(database, workers=False) as made:
        yield made


async def raw(
    api: Api, line: str, key: str | None, body: bytes | None = b"", **headers: str
) -> tuple[int, dict[str, Any]]:
    """Send a request line as it is; with `body` None only the promise of one. The status, and the JSON."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    length = 1_000_000 if body is None else len(body)
    sent = {"Host": f"127.0.0.1:{api.port}", "Connection": "close", "Content-Type": "application/json", **headers}
    sent |= {"Content-Length": str(length)} | ({} if key is None else {"X-API-Key": key})
    head = f"{line} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in sent.items()) + "\r\n"
    writer.write(head.encode("latin-1") + (body or b""))
    try:
        async with asyncio.timeout(10):
            status = int((await reader.readline()).split()[1])
            fields = [
                each.partition(b":")[::2] for each in (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n") if each
            ]
            size = next((int(value) for name, value in fields if name.lower() == b"content-length"), 0)
            text = b"" if line.startswith("HEAD") else await reader.readexactly(size)
    finally:
        writer.close()
    return status, json.loads(text) if text.startswith(b"{") else {}


def spellings(path: str) -> list[str]:
    """Other ways to write a path."""
    first, last = path.rsplit("/", 1)
    return [
        path + "/",
        path + "//",
        path.replace("/", "//"),
        "/" + path,
        path.replace("/api/v1", "/api/v1/."),
        path.replace("/api/v1", "/api/v1/x/.."),
        path.replace("/api/v1", "/x/../api/v1"),
        f"{first}/./{last}",
        f"{first}/%2e/{last}",
        f"{first}%2F{last}",
        f"{first}/{last}%2F",
        f"{first}/{last}%00",
        f"{first}/{last};x=1",
        f"{first}/{last}.json",
        f"{first}/{last}%3Fx",
        f"{first}/{last}?x=1#y",
        first + "/" + "".join(f"%{ord(letter):02x}" for letter in last),
        quote(path, safe=""),
        path.upper(),
        path.title(),
        path.replace("/v1", "/V1"),
        path.replace("/v1", "/v2"),
        path.replace("/", "\\"),
        f"http://127.0.0.1{path}",
        path.removeprefix("/api/v1"),
    ]


OVERRIDES: list[dict[str, str]] = [
    {},
    {"X-HTTP-Method-Override": "POST"},
    {"X-Method-Override": "POST"},
    {"X-Original-URL": "/api/v1/health"},
    {"X-Rewrite-URL": "/health/live"},
    {"X-Forwarded-Prefix": "/api/v1"},
]


async def test_no_spelling_of_a_deciding_route_lets_an_agent_in(api: Api, figures: Figures):
    agent = await caller(api, "agent")
    approval = await agent.asks("run-1", "node-1")
    answers: Counter[int] = Counter()
    paths = [
        f"{PREFIX}/approvals/{approval}/decision",
        f"{PREFIX}/executions/run-1/approval-response",
        f"{PREFIX}/webhooks/approval-response",
    ]
    for path in paths:
        for spelling in spellings(path):
            for method in ("POST", "PUT", "GET", "PATCH", "post", "DECIDE"):
                status, _ = await raw(api, f"{method} {spelling}", agent.key.text, DECISION)
                answers[status] += 1
                assert status in {400, 401, 403, 404, 405}, (method, spelling)
        for headers in OVERRIDES:
            for method in ("GET", "PUT", "DELETE"):
                status, _ = await raw(api, f"{method} {path}?_method=POST", agent.key.text, DECISION, **headers)
                answers[status] += 1
                assert status in {401, 403, 404, 405}, (method, path, headers)
    assert await count(api, "SELECT count(*) FROM approvals WHERE status = 'pending'") == 1
    figures("spellings", requests=answers.total(), **{f"answered_{status}": many for status, many in answers.items()})


async def test_methods_that_no_route_has_change_and_tell_nothing(api: Api):
    agent = await caller(api, "agent")
    approval = await agent.asks("run-1", "node-1")
    known = {(route.method, route.at(**ids(approval))) for route in routes()}
    for path in sorted({path for _, path in known}):
        for method in ("HEAD", "PUT", "DELETE", "TRACE", "PROPFIND"):
            if (method, path) in known:
                continue
            for key in (None, agent.key.text):
                status, said = await raw(api, f"{method} {whole(path)}", key)
                assert status in {404, 405}, (method, path)
                assert said.get("error", "not_found") in {"not_found", "method_not_allowed"}, (method, path)
        # What the framework would answer by itself is for nobody.
        assert (await raw(api, f"OPTIONS {whole(path)}", None))[0] in {401, 403}, path
        assert (await raw(api, f"OPTIONS {whole(path)}", agent.key.text))[0] == 403, path
    assert await count(api, "SELECT count(*) FROM approvals WHERE status = 'pending'") == 1


def whole(path: str) -> str:
    """A route's path from the root: those of the original wire stand beside the others."""
    return path if path.startswith("/api/") else PREFIX + path


def ids(approval: str) -> dict[str, str]:
    return {
        "execution_id": "run-1",
        "approval_id": approval,
        "node_id": "node-1",
        "target": "node-1.work",
        "delivery_id": "dlv_0",
        "unique_id": "u-1",
    }


async def test_paths_that_are_unknown_tell_nothing_to_anybody(api: Api):
    agent = await caller(api, "agent")
    await agent.asks("run-1", "node-1")
    assert (await raw(api, "GET /", None)) == (303, {})  # to the inbox, whoever asks
    unknown = ["/api", "/api/v1", "/api/v1/", "/api/v1/keys", "/api/v1/executions/run-1/secret", "/metrics/x"]
    for path in (*unknown, "/api/v1/executions/run-1/approval-status/x", "/executions/run-1"):
        without, with_key = await raw(api, f"GET {path}", None), await raw(api, f"GET {path}", agent.key.text)
        assert (without[0], without[1]["error"]) == (404, "not_found"), path
        assert {**without[1], "request_id": ""} == {**with_key[1], "request_id": ""}, path
    for path in ("/openapi", "/openapi/", "/openapi/openapi.json"):
        assert (await raw(api, f"GET {path}", None))[0] in {401, 404}, path
        assert (await raw(api, f"GET {path}", agent.key.text))[0] in {403, 404}, path


async def test_callers_are_refused_before_their_body_is_read(api: Api, figures: Figures):
    agent, admin = await caller(api, "agent"), await caller(api, "admin")
    approval = await agent.asks("run-1", "node-1")
    answered: Counter[int] = Counter()
    # None of these sends the body that it promises, so whoever waited for it would not answer.
    for route in routes():
        if route.purpose is Access.PUBLIC:
            continue
        line = f"{route.method} {whole(route.at(**ids(approval)))}"
        wrong = agent if route.purpose in {Access.REVIEW, Access.ADMIN} else admin
        for key in (None, "hs_nonsense", wrong.key.text):
            if key == admin.key.text and route.purpose not in {
                Access.AGENT,
                Access.EXECUTE,
                Access.WITHDRAW,
                Access.FEEDBACK,
            }:
                continue
            status, _ = await raw(api, line, key, None)
            answered[status] += 1
            assert status == (403 if key == wrong.key.text else 401), (line, key)
    lines = ["POST /api/v1/nothing", "POST /nothing", "PUT /api/v1/executions"]
    assert [(await raw(api, line, None, None))[0] for line in lines] == [404, 404, 405]
    assert (await raw(api, "GET /openapi.json", None, None))[0] == 401
    figures("refused before the body", routes=len(routes()), answered_401=answered[401], answered_403=answered[403])


def hidden(text: str) -> list[str]:
    """Ways to put a key into a URL."""
    twice = quote(quote(text, safe="").replace("h", "%68"), safe="")
    return [
        f"?api_key={text}",
        f"?x={text}",
        f"?{text}",
        f"?{text}=1",
        f"?api_key=h%73_{text[3:]}",
        f"?api_key={''.join(f'%{ord(letter):02x}' for letter in text)}",
        f"?api_key={twice}",
        f"?x={twice}",
        f"?x=is%20h%73_{text[3:]}",
        f"?h%73_{text[3:]}",
        f"?x=%20{text}",
        f"?x=Bearer%20{text}",
        f"?x=Bearer+{text}",
        f"?x=a&x={text}",
        f"?x[]={text};y",
        f"?api_key={text[:30]}",
        "?api_key=something-else",
        "?X-API-Key=something-else",
        f"?x={text.upper()}",
    ]


@pytest.mark.parametrize("path", ["/api/v1/executions", "/api/v1/nothing", "/health/live", "/openapi.json", "/"])
async def test_a_key_in_a_url_is_refused_however_it_is_spelled(api: Api, path: str, capfd: pytest.CaptureFixture[str]):
    admin = await caller(api, "admin")
    text = admin.key.text
    for query in hidden(text):
        for key in (None, text):
            status, said = await raw(api, f"GET {path}{query}", key)
            assert (status, said["error"]) == (400, "key_in_url"), query
            assert text[16:] not in json.dumps(said)
    encoded = quote(text.replace("h", "%68"), safe="")
    for line in (
        f"GET {path.rstrip('/')}/{text}",
        f"GET {path.rstrip('/')}/{encoded}",
        f"GET {path.rstrip('/')}/x/{text}/y",
        f"PUT {path}?k={text}",
    ):
        status, said = await raw(api, line, text)
        assert (status, said["error"]) == (400, "key_in_url"), line
    printed = capfd.readouterr()
    assert text[16:] not in printed.out + printed.err


async def test_what_is_no_key_may_stand_in_a_query(api: Api):
    reviewer = await caller(api, "review")
    for query in ("?q=ths_x", "?q=100%25", "?q=key", "?q=a_hs_b", "?q=%68ello"):
        assert (await raw(api, f"GET {PREFIX}/approvals{query}", reviewer.key.text))[0] == 200, query


async def test_of_keys_that_differ_none_counts_and_of_the_same_one_does(database: Database):
    async with in_process(database) as api:
        agent, reviewer = await caller(api, "agent"), await caller(api, "review")
        one, two = agent.key.text, reviewer.key.text
        path = "/api/v1/executions"
        differing: list[list[tuple[str, str]]] = [
            [("X-API-Key", one), ("X-API-Key", two)],
            [("X-API-Key", one), ("Authorization", f"Bearer {two}")],
            [("Authorization", f"Bearer {one}"), ("Authorization", f"Bearer {two}")],
            [("X-API-Key", f"{one}, {two}")],
            [("X-API-Key", one), ("Authorization", "Bearer x")],
            [("X-API-Key", one + "0")],
            [("X-API-Key", one[:-1] + ("0" if one[-1] != "0" else "1"))],
            [("X-API-Key", one.upper())],
            [("X-API-Key", one[:16] + two[16:])],
            [("X-API-Key", two[:16] + one[16:])],
            [("X-API-Key", "hs_")],
        ]
        for headers in differing:
            assert problem(await api.client.get(path, headers=headers)) == (401, "invalid_key"), headers
        for headers in (
            [("X-API-Key", one), ("Authorization", f"Bearer {one}")],
            [("X-API-Key", one), ("Authorization", "Basic eDp5")],
            [("Authorization", f"bEaReR {one}")],
        ):
            assert (await api.client.get(path, headers=headers)).status_code == 200, headers
        for headers in (
            [("X-API-Key", "")],
            [("Authorization", one)],
            [("Authorization", "Basic eDp5")],
            [("Cookie", one)],
        ):
            assert problem(await api.client.get(path, headers=headers)) == (401, "not_authenticated"), headers
