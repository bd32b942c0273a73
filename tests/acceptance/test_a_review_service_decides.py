"""Requests made with `hax-sdk` at a review service, whose webhooks `hax-sdk` signs, decide an older agent's pause."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.desk import SECRET, Desk
from tests.acceptance.peers import PROGRAMS
from tests.durability.plane import API, until

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("agent")]

WEBHOOK = f"{API}/webhooks/approval-response"


class Service:
    """Stands in for the hosted service: takes what the client creates, and lets a test answer it."""

    def __init__(self, sender: "subprocess.Popen[str]") -> None:
        self.url = ""
        self.created: list[dict[str, Any]] = []
        self._sender = sender

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert head.startswith("post /requests http/1.1")
        assert "authorization: bearer hax_test_key" in head
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        made = json.loads(await reader.readexactly(length))
        number = len(self.created) + 1
        made |= {
            "id": f"req_{number}",
            "url": f"{self.url}/hub/r/req_{number}",
            "status": "pending",
            "createdAt": "2026-01-01T00:00:00Z",
        }
        self.created.append(made)
        body = json.dumps(made).encode()
        writer.write(
            b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        writer.write(body)
        await writer.drain()
        writer.close()

    def event(self, kind: str, made: dict[str, Any], **data: Any) -> tuple[bytes, dict[str, str]]:
        """A webhook of the service: its body and its signature header."""
        known = {name: made[name] for name in ("id", "type", "metadata", "createdAt")}
        status = kind.rpartition(".")[2]
        line = {"type": kind, "data": {**known, "status": status, **data}, "secret": SECRET}
        assert self._sender.stdin is not None
        assert self._sender.stdout is not None
        self._sender.stdin.write(json.dumps(line) + "\n")
        self._sender.stdin.flush()
        signed = json.loads(self._sender.stdout.readline())
        return signed["body"].encode(), {"X-Hax-Signature": signed["signature"]}


@pytest.fixture(scope="module")
def sender(peer_python: Path) -> Iterator["subprocess.Popen[str]"]:
    """The program that makes webhooks with `hax-sdk`."""
    with subprocess.Popen(
        [peer_python, PROGRAMS / "hax_sender.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as made:
        yield made
        assert made.stdin is not None
        made.stdin.close()
        assert made.wait(30) == 0


@pytest.fixture
async def service(sender: "subprocess.Popen[str]") -> AsyncIterator[Service]:
    made = Service(sender)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


async def created(desk: Desk, service: Service) -> tuple[str, dict[str, Any]]:
    """A run that created a request at the service and waits for its answer."""
    run = await desk.start("peer.by_service", service=service.url)
    await desk.until_waiting(run)
    made = service.created[-1]
    assert made["webhookUrl"].endswith(WEBHOOK)
    assert made["metadata"] == {"executionId": run}
    assert (await desk.look(run))["approval_request_url"] == made["url"]
    return run, made


async def test_the_service_s_events_decide_when_they_say_so(desk: Desk, service: Service):
    run, made = await created(desk, service)
    for kind in ("request.sent", "request.opened"):
        ignored = await desk.post_signed(*service.event(kind, made))
        assert (ignored.status_code, ignored.json()) == (200, {"status": "ignored", "type": kind})
    answer = {"decision": "approve", "feedback": "ship it", "fields": {"when": "now"}}
    completed = service.event("request.completed", made, response=answer, respondedBy="ann")
    decided = await desk.post_signed(*completed)
    assert (decided.status_code, decided.json()["status"]) == (200, "processed")
    over = await desk.until_over(run)
    assert (over["result"]["approved"], over["result"]["feedback"]) == (True, "ship it")
    assert over["result"]["raw_response"] == answer
    again = await desk.post_signed(*completed)
    assert (again.status_code, again.json()["replayed"]) == (200, True)


async def test_the_service_s_expiry_is_an_expiry(desk: Desk, service: Service):
    run, made = await created(desk, service)
    expired = await desk.post_signed(*service.event("request.expired", made))
    assert (expired.status_code, expired.json()["decision"]) == (200, "expired")
    over = await desk.until_reported(run)
    assert (over["status"], over["result"]["decision"]) == ("cancelled", "expired")


@pytest.mark.parametrize(
    "response", [{}, None, {"_encrypted": "b3BhcXVl"}, {"decision": "maybe"}, {"approved": True}, {"decision": ""}]
)
async def test_an_answer_without_a_decision_that_can_be_read_decides_nothing(
    desk: Desk, service: Service, response: dict[str, Any] | None
):
    run, made = await created(desk, service)
    refused = await desk.post_signed(*service.event("request.completed", made, response=response))
    assert refused.status_code == 400
    assert refused.json()["error"] in {"decision_missing", "invalid_decision"}
    assert (await desk.look(run))["status"] == "waiting"
    await desk.post_signed(*service.event("request.completed", made, response={"action": "deny"}))
    await until(lambda: is_cancelled(desk, run))


async def is_cancelled(desk: Desk, run: str) -> bool:
    return bool((await desk.look(run))["status"] == "cancelled")
