"""Over real sockets: a caller without a right is answered before its body is read, and a refusal is seen."""

import asyncio
import json
import os
from collections.abc import AsyncIterator

import httpx
import pytest

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES, mint
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api, problem, served
from tests.http.walk import BODYLESS, CAPS, SIGNED, calls
from tests.postgres import Database

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
MIB = 1024 * 1024


@pytest.fixture
async def guarded(database: Database) -> AsyncIterator[Api]:
    async with served(database, workers=False, open_mode=False) as made:
        yield made


async def key(api: Api, *scopes: str) -> str:
    async with api.runtime.transaction() as conn:
        wanted = Wanted(name="k", scopes=scopes)
        return (await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))[1]


async def begin(api: Api, method: str, path: str, *headers: str) -> tuple[int, dict[str, object]]:
    """Send a head that announces 8 MiB and nothing of them; the answer, which comes all the same."""
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Content-Length: 8388608",
        *headers,
    )
    try:
        writer.write("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        async with asyncio.timeout(10):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            body = json.loads(await reader.readexactly(length))
    finally:
        writer.close()
        await writer.wait_closed()
    return int(head.split()[1]), body


async def test_a_wrong_key_is_refused_on_every_route_before_anything_of_its_body_came(guarded: Api):
    walked = 0
    for call in calls():
        if call.name not in CAPS | dict.fromkeys(BODYLESS) or call.name == SIGNED:
            continue
        walked += 1
        for headers in ((), ("Expect: 100-continue",)):
            wrong = mint(os.urandom(ENTROPY_BYTES))[1]
            status, body = await begin(guarded, call.method, call.at(), f"X-API-Key: {wrong}", *headers)
            assert (status, body["error"]) in {(401, "invalid_key"), (429, "too_many_failures")}, call.path
        status, body = await begin(guarded, call.method, call.at(), "Expect: 100-continue")
        assert (status, body["error"]) == (401, "not_authenticated")
    assert walked >= 25


async def test_a_key_of_another_scope_is_refused_before_anything_of_its_body_came(guarded: Api):
    review = await key(guarded, "review")
    status, body = await begin(guarded, "POST", "/api/v1/nodes/register", f"X-API-Key: {review}")
    assert (status, body["error"]) == (403, "not_allowed")


async def test_a_right_key_is_told_to_go_on(guarded: Api):
    text = await key(guarded, "agent")
    reader, writer = await asyncio.open_connection("127.0.0.1", guarded.port)
    body = b'{"node_id": "node-1", "execution_id": "run-1"}'
    writer.write(
        b"POST /api/v1/executions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n" % (text.encode(), len(body))
    )
    async with asyncio.timeout(10):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 201")
    writer.close()
    await writer.wait_closed()


async def test_twenty_mib_of_a_report_are_a_413_that_is_seen_and_the_end_of_the_run(guarded: Api):
    text = await key(guarded, "agent")
    mine = {"X-API-Key": text}
    started = {"node_id": "node-1", "execution_id": "run-1"}
    assert (await guarded.client.post("/api/v1/executions", json=started, headers=mine)).status_code == 201
    report = json.dumps({"status": "succeeded", "result": "x" * 20 * MIB}).encode()
    reply = await guarded.client.post(
        "/api/v1/executions/run-1/status", content=report, headers=mine | {"Content-Type": "application/json"}
    )
    assert problem(reply) == (413, "body_too_large")
    run = (await guarded.client.get("/api/v1/executions/run-1", headers=mine)).json()
    assert (run["status"], run["status_reason"], run["result"]) == ("failed", "result_too_large", None)


async def test_a_large_report_ends_nobody_elses_run(guarded: Api):
    owner, stranger, review = await key(guarded, "agent"), await key(guarded, "agent"), await key(guarded, "review")
    started = {"node_id": "node-1", "execution_id": "run-1"}
    assert (await send(guarded, owner, "/executions", started)).status_code == 201
    status = "/executions/run-1/status"
    assert problem(await send(guarded, stranger, status, large())) == (404, "execution_not_found")
    assert problem(await send(guarded, review, status, large())) == (403, "not_allowed")
    assert problem(await send(guarded, mint(os.urandom(32))[1], status, large())) == (401, "invalid_key")
    assert problem(await send(guarded, owner, status, large(), fence="7")) == (409, "stale_instance")
    assert problem(await send(guarded, owner, status, large(), fence="x")) == (422, "invalid_field")
    assert problem(await send(guarded, owner, status, large(), kind="text/plain")) == (415, "unsupported_media_type")
    reply = await guarded.client.get("/api/v1/executions/run-1", headers={"X-API-Key": owner})
    assert reply.json()["status"] == "running"
    assert problem(await send(guarded, owner, status, large(), fence="0")) == (413, "body_too_large")
    reply = await guarded.client.get("/api/v1/executions/run-1", headers={"X-API-Key": owner})
    assert (reply.json()["status"], reply.json()["status_reason"]) == ("failed", "result_too_large")


def large() -> dict[str, str]:
    return {"status": "succeeded", "result": "x" * 8 * MIB}


async def send(
    api: Api, text: str, path: str, body: object, *, fence: str | None = None, kind: str = "application/json"
) -> httpx.Response:
    headers = {"X-API-Key": text, "Content-Type": kind} | ({"X-Holdshort-Fence": fence} if fence else {})
    return await api.client.post(f"/api/v1{path}", content=json.dumps(body).encode(), headers=headers)
