"""The API key stands in one header to the control plane: in no log, no text of ours, and at no other address."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from holdshort import Agent, AsyncClient, Client, ConnectionFailed, HoldshortError, Refused
from holdshort import _origin as origin
from holdshort.testing import ControlPlane

from sdk.python.tests.dispatching import listening
from sdk.python.tests.support import Wire, callback_body, serving

KEY = "hs_0123456789ab_canary0canary0canary0canary"
CANARY = "canary0"


class Listener:
    """A server that keeps every header it was sent, and answers with a status and headers."""

    def __init__(self, status: int = 500, headers: list[tuple[bytes, bytes]] | None = None) -> None:
        self.status = status
        self.headers = headers or []
        self.got: list[dict[str, str]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        self.got.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
async def elsewhere() -> AsyncIterator[tuple[Listener, str]]:
    listener = Listener(200)
    async with serving(listener) as url:
        yield listener, url


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed(elsewhere: tuple[Listener, str], status: int) -> None:
    target, url = elsewhere
    redirecting = Listener(status, [(b"location", url.encode())])

    async with serving(redirecting) as first:
        async with AsyncClient(first, KEY) as client:
            with pytest.raises(Refused, match="not followed"):
                await client.get_execution("run-1")

        def blocking() -> None:
            with Client(first, KEY) as client, pytest.raises(Refused, match="not followed"):
                client.create_execution("n", "run-1")

        await asyncio.to_thread(blocking)
    assert [got["authorization"] for got in redirecting.got] == [f"Bearer {KEY}"] * 2
    assert target.got == []


async def test_it_stands_in_no_log_and_in_no_text(
    plane: ControlPlane, wire: Wire, unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    texts: list[str] = []
    for chatty in ("httpx", "httpcore"):  # whatever level a program gave them
        caplog.set_level(logging.DEBUG, logger=chatty)
    with caplog.at_level(logging.DEBUG):
        async with serving(wire) as url:
            agent = Agent("contract-reviewer", "1", url, KEY)
            async with listening(agent), agent.execution("run-1") as run:
                pausing = asyncio.create_task(agent.pause("q"))
                approval = await plane.asked()
                plane.decide(approval, "approved")
                await pausing
                async with httpx.AsyncClient(base_url=agent.base_url or "") as client:
                    for path in ("/health", "/reasoners/none", "/webhooks/approval"):
                        answer = await client.post(path, content=callback_body(approval, "approved"))
                        texts += [answer.text, str(answer.headers)]
                texts += [repr(agent), repr(run), repr(run.session), repr(run.session.client)]
        for address in (f"http://127.0.0.1:{unused_tcp_port}", url):
            client_of_none = AsyncClient(address, KEY, patience=0.0)
            with pytest.raises(ConnectionFailed) as failed:
                await client_of_none.get_execution("run-1")
            texts += [repr(client_of_none), repr(failed.value), str(failed.value), str(failed.value.details)]
            await client_of_none.aclose()
        async with serving(Listener(401)) as refusing, AsyncClient(refusing, KEY) as client:
            with pytest.raises(HoldshortError) as refused:
                await client.get_execution("run-1")
            texts += [repr(refused.value), str(refused.value.__dict__)]
    logged = [f"{each.getMessage()} {each.args} {each.exc_text}" for each in caplog.records]
    assert {"httpx", "httpcore.connection"} <= {each.name for each in caplog.records}
    assert len(texts) > 10
    assert [text for text in texts + logged if CANARY in text] == []


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://holdshort.internal:8080", True),
        ("HTTP://10.0.0.1", True),
        ("https://holdshort.example.com", False),
        ("http://localhost:8080", False),
        ("http://127.0.0.1:8080", False),
        ("http://[::1]:8080", False),
    ],
)
def test_plain_http_to_another_machine_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, url: str, *, warned: bool
) -> None:
    monkeypatch.setattr(origin, "_warned", set())
    Client(url)
    assert caplog.messages == []
    for make in (Client, AsyncClient, Client):
        make(url, KEY)
    assert len(caplog.messages) == warned
    assert [text for text in caplog.messages if CANARY in text or "use https" not in text] == []
