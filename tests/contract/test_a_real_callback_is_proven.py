"""What a real control plane sends to the SDK's route is proven there; a copy that differs in anything is not."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import pytest
import uvicorn
from holdshort import Agent, AsyncClient, Verdict
from holdshort.webhooks import sign

from tests.contract.planes import Plane, asked, until

PATH = "/webhooks/approval"


class Arrived(NamedTuple):
    headers: dict[str, str]
    body: bytes


class Recording:
    """An agent's application that keeps the callbacks that reach it."""

    def __init__(self, agent: Agent) -> None:
        self._app = agent.asgi
        self.callbacks: list[Arrived] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        whole = await receive()
        assert not whole.get("more_body")
        names = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.callbacks.append(Arrived(names, whole["body"]))

        async def again() -> Any:
            return whole

        await self._app(scope, again, send)


@asynccontextmanager
async def recorded(agent: Agent) -> AsyncIterator[Recording]:
    """The agent on a loopback port."""
    app = Recording(agent)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server._serve())
    await until(lambda: _done(server.started or task.done()), bool)
    agent.reachable_at(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")
    try:
        yield app
    finally:
        server.should_exit = True
        await task


async def _done(value: bool) -> bool:
    return value


@pytest.fixture
def agent(plane: Plane, fresh: Callable[[str], str]) -> Agent:
    """One that only a callback wakes."""
    return Agent(fresh("node"), "1", control_plane_url=plane.url, callback="push")


async def test_a_copy_of_it_proves_nothing_but_itself(agent: Agent, client: AsyncClient, fresh: Callable[[str], str]):
    async with recorded(agent) as app, agent.execution(fresh("run")), httpx.AsyncClient() as attacker:
        url = f"{agent.base_url}{PATH}"
        first = asyncio.create_task(agent.pause(fresh("first")))
        second = asyncio.create_task(agent.pause(fresh("second")))
        (one,) = await asked(client, fresh("first"))
        (two,) = await asked(client, fresh("second"))
        await client.decide(one.approval_id, Verdict(decision="request_changes"))
        assert (await first).changes_requested
        (arrived,) = app.callbacks
        kept = ("webhook-id", "webhook-timestamp", "webhook-signature")
        headers = {name: arrived.headers[name] for name in kept}

        async def post(body: bytes, sent: dict[str, str]) -> tuple[int, Any]:
            answer = await attacker.post(url, content=body, headers=sent)
            return answer.status_code, answer.json().get("error") or answer.json()["resolved"]

        refused = (401, "invalid_signature")
        assert await post(arrived.body, headers) == (200, True)
        for name in kept:
            assert await post(arrived.body, {k: v for k, v in headers.items() if k != name}) == refused
            assert await post(arrived.body, headers | {name: headers[name][:-2] + "12"}) == refused
        # Whatever is changed of it, another round or another question, it wakes nobody.
        of_second = arrived.body.replace(fresh("first").encode(), fresh("second").encode())
        for body in (
            arrived.body.replace(b"request_changes", b"approved"),
            arrived.body + b"\n",
            of_second.replace(b"request_changes", b"approved"),
        ):
            assert await post(body, headers) == refused
            assert await post(body, {}) == refused
            assert await post(body, sign("guessed-by-someone", body, now=1, webhook_id="m")) == refused
        again = asyncio.create_task(agent.pause(fresh("first")))
        (three,) = await asked(client, fresh("first"), round_=2)
        assert await post(arrived.body, headers) == (200, True)
        assert await post(arrived.body.replace(b'"round":1', b'"round":2'), headers) == refused
        assert not again.done()
        assert not second.done()
        await client.decide(three.approval_id, Verdict(decision="approved"))
        await client.decide(two.approval_id, Verdict(decision="rejected"))
        assert (await again).approved
        assert (await second).rejected


async def test_a_new_secret_for_a_request_ends_the_one_before(
    agent: Agent, client: AsyncClient, plane: Plane, fresh: Callable[[str], str]
):
    """Another process of the node waits for the same question: the control plane signs with what it was given last."""
    async with recorded(agent) as before, agent.execution(fresh("run")):
        first = asyncio.create_task(agent.pause(fresh("q")))
        (approval,) = await asked(client, fresh("q"))
        other = Agent(agent.node_id, "1", control_plane_url=plane.url, callback="push")
        async with recorded(other) as after:
            waiting = asyncio.create_task(other.wait_for_resume(fresh("q"), fresh("run")))
            await until(lambda: _done(len(other.registry) == 1), bool)

            async def moved() -> bool:
                found = await client.get_approval(approval.approval_id)
                return any(each.get("type") == "approval.callback_changed" for each in found.history)

            await until(moved, bool)
            await client.decide(approval.approval_id, Verdict(decision="approved"))
            assert (await waiting).approved
            (arrived,) = after.callbacks
            assert before.callbacks == []
            kept = ("webhook-id", "webhook-timestamp", "webhook-signature")
            async with httpx.AsyncClient() as attacker:
                answer = await attacker.post(
                    f"{agent.base_url}{PATH}",
                    content=arrived.body,
                    headers={name: arrived.headers[name] for name in kept},
                )
            assert answer.status_code == 401
            assert not first.done()
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
