"""Every route of the table, with bodies and paths that are made to break it: an exact refusal, and never a 5xx."""

import json
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from controlplane.domain import signatures
from tests.app import SECRET, Api, problem
from tests.figures import Figures
from tests.http.walk import BODYLESS, CAPS, DROPPED, GOOD, MIB, SIGNED, Call, calls

pytestmark = pytest.mark.asyncio(loop_scope="module")

JSON = "application/json"
HOSTILE = {
    "five thousand brackets": b"[" * 5000,
    "five thousand objects": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "65 deep": b'{"a":' * 65 + b"1" + b"}" * 65,
    "an escaped NUL": b'{"a": "\\u0000"}',
    "a NUL": b'{"a": "\x00"}',
    "a NUL as a name": b'{"\\u0000": 1}',
    "half a pair": b'{"a": "\\ud800"}',
    "the other half": b'{"a": "\\udc00\\ud800"}',
    "half a pair in UTF-8": b'{"a": "\xed\xa0\x80"}',
    "no UTF-8": b'{"a": "\xff"}',
    "too large a number": b'{"a": 1e999}',
    "too small a number": b'{"a": 1e-999}',
    "too long a number": b'{"a": ' + b"9" * 5000 + b"}",
    "no number": b'{"a": NaN}',
    "a name twice": b'{"a": 1, "a": 1}',
    "a name twice, deep": b'{"a": [{"b": 1, "\\u0062": 1}]}',
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "nothing closed": b'{"a',
}
CONTROL = ["%00", "a%00b", "%0a", "a%0Ab", "%0d", "%1b", "%7f", "%c2%85", "%c2%80", "%e2%80%a8"]
ODD = ["x" * 5000, "%ff", "%ed%a0%80", "%c3%a9", "%2e%2e", "%25%30%30", "%", "%zz", "a%2fb", "a;b", "a?b", "%20"]


@pytest.fixture(scope="module")
def api(shared_api: Api) -> Api:
    """One application for the whole file."""
    return shared_api


async def send(api: Api, call: Call, body: bytes | None, path: str, kind: str = JSON) -> httpx.Response:
    """One call, its body signed where that is what the route asks for."""
    headers = {} if body is None else {"Content-Type": kind}
    if call.name == SIGNED and body is not None:
        headers["X-Webhook-Signature"] = signatures.sign_hex(SECRET, body)
    if call.name == "take_note":
        headers["X-Execution-ID"] = "run-1"
    return await api.client.request(call.method, path, content=body, headers=headers)


def good(call: Call) -> bytes | None:
    if call.method == "GET":
        return None
    return json.dumps(GOOD.get(call.name, {})).encode()


def with_body() -> Iterable[Call]:
    return [call for call in calls() if call.name in CAPS]


async def test_every_route_that_could_take_a_body_is_walked():
    writing = {call.name for call in calls() if call.method != "GET"}
    assert writing == CAPS.keys() | BODYLESS
    assert CAPS.keys() >= {
        call.name for call in calls() if "takes" in call.handler.opt or "takes_any" in call.handler.opt
    }


async def test_only_json_is_taken_everywhere_but_by_the_signed_webhook(api: Api):
    for call in with_body():
        for kind in (
            "text/plain",
            "text/plain; a=application/json",
            "application/x-www-form-urlencoded",
            "text/json",
            "",
        ):
            reply = await send(api, call, b"{}", call.at(), kind)
            if call.name == SIGNED:
                assert problem(reply) == (400, "request_id_missing")
            else:
                assert problem(reply) == (415, "unsupported_media_type"), (call.path, kind)


async def test_every_hostile_body_is_an_invalid_one(api: Api, figures: Figures):
    walked = 0
    for call in with_body():
        for what, body in HOSTILE.items():
            walked += 1
            reply = await send(api, call, body, call.at())
            if call.name in DROPPED:
                assert reply.status_code == 200, (call.path, what)
            elif len(body) > CAPS[call.name]:
                assert refused(reply) == CAPS[call.name], (call.path, what)
            else:
                assert problem(reply) == (400, "invalid_body"), (call.path, what, reply.text)
    figures("hostile bodies", sent=walked, refused_with_a_5xx=0)


async def test_a_body_over_its_cap_is_413_announced_or_not(api: Api):
    await api.start("run-413")
    for call in with_body():
        over = b'{"a": "' + b"x" * (CAPS[call.name] - 8) + b'"}'
        assert len(over) == CAPS[call.name] + 1
        path = call.at(execution_id="run-413")
        assert refused(await send(api, call, over, path)) == CAPS[call.name], call.path
        assert refused(await send_in_chunks(api, call, over, path)) == CAPS[call.name], call.path
        within = await send(api, call, over.replace(b"x", b"", 1), path)
        assert within.status_code < 500
        assert within.status_code != 413, call.path


async def test_a_path_with_a_control_character_is_not_found(api: Api, figures: Figures):
    walked = 0
    for call in calls():
        for parameter in call.parameters:
            for value in CONTROL:
                walked += 1
                reply = await send(api, call, good(call), call.at(**{parameter: value}))
                assert problem(reply)[0] == 404, (call.path, parameter, value, reply.text)
    figures("paths with control characters", sent=walked, found=0)


async def test_no_odd_path_is_a_fault_of_ours(api: Api):
    for call in calls():
        for parameter in call.parameters:
            for value in ODD:
                reply = await send(api, call, good(call), call.at(**{parameter: value}))
                assert reply.status_code < 500, (call.path, parameter, value, reply.text)
                if not reply.is_success:
                    problem(reply)


async def test_nothing_of_it_changed_anything(api: Api):
    for run in (await api.get("/executions")).json()["executions"]:
        assert run["execution_id"] == "run-413"
    assert (await api.get("/approvals")).json()["approvals"] == []
    assert (await api.get("/nodes")).json()["nodes"] == []


def refused(reply: httpx.Response) -> Any:
    assert problem(reply) == (413, "body_too_large")
    return reply.json()["limit_bytes"]


async def send_in_chunks(api: Api, call: Call, body: bytes, path: str) -> httpx.Response:
    async def pieces() -> Any:
        for at in range(0, len(body), MIB):
            yield body[at : at + MIB]

    headers = {"Content-Type": JSON, "X-Execution-ID": "run-1"}
    if call.name == SIGNED:
        headers["X-Webhook-Signature"] = signatures.sign_hex(SECRET, body)
    return await api.client.request(call.method, path, content=pieces(), headers=headers)
