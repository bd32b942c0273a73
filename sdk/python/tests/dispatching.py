"""The control plane's part of dispatching: runs are made, given to where their agent registered, and cancelled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from holdshort import Agent
from holdshort._lifetime import Lifetime
from holdshort._serving import server_for
from holdshort.testing import ControlPlane, _nodes
from holdshort.testing._book import Ran

from sdk.python.tests.support import eventually


class Launcher:
    """Gives the testing control plane's runs to agents over real sockets."""

    def __init__(self, plane: ControlPlane, client: httpx.AsyncClient) -> None:
        self.plane = plane
        self.book = plane._book
        self._client = client
        # httpx's pool looks at every waiting request each time one ends.
        self._slots = asyncio.Semaphore(16)

    def queue(self, execution_id: str, reasoner: str, node_id: str = "contract-reviewer", **given: Any) -> Ran:
        """A run that waits for an agent."""
        run, _ = self.book.create(
            node_id, execution_id, reasoner=reasoner, input=given, dispatched=True, status="queued"
        )
        return run

    async def give(self, execution_id: str, **headers: str) -> httpx.Response:
        """Claim a run for the newest instance, and send it there."""
        run = self.book.executions[execution_id]
        instance = _nodes.claim(self.book, run)
        assert instance is not None, "no instance is live"
        return await self.send(run, instance.told.base_url, **headers)

    async def send(self, run: Ran, base_url: str, **headers: str) -> httpx.Response:
        """Send a run under the fence that it has."""
        known = {"X-Execution-ID": run.execution_id, "X-Holdshort-Fence": str(run.fence), "X-Holdshort-Steps": "0"}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self._slots:
            url = f"{base_url}/reasoners/{run.reasoner}"
            return await self._client.post(url, json=run.input, headers=known | named)

    async def start(self, execution_id: str, reasoner: str, **given: Any) -> Ran:
        """Queue a run and let the agent take it."""
        run = self.queue(execution_id, reasoner, **given)
        taken = await self.give(execution_id)
        assert taken.json() == {"status": "processing", "execution_id": execution_id}, taken.text
        assert taken.status_code == 202
        return run

    async def cancel(self, execution_id: str, reason: str, fence: int | None = None) -> httpx.Response:
        """Tell whoever has a run that it is over."""
        run = self.book.executions[execution_id]
        told = self.book.instances[run.instance_id].told
        headers = {"X-Holdshort-Fence": str(run.fence if fence is None else fence)}
        url = f"{told.base_url}/_internal/executions/{execution_id}/cancel"
        return await self._client.post(url, json={"reason": reason}, headers=headers)

    def take_over(self, execution_id: str) -> None:
        """Give a run to somebody else, who is not there: whoever had it does not know."""
        run = self.book.executions[execution_id]
        run.fence += 1
        run.instance_id = "another"

    async def ended(self, execution_id: str, seconds: float = 5.0) -> Ran:
        """A run, once its end is reported."""
        run = self.book.executions[execution_id]
        await eventually(lambda: run.ended_at is not None and not run.outcome_pending, seconds)
        return run

    async def registered(self, count: int = 1, node_id: str = "contract-reviewer") -> None:
        """Wait until so many instances of a node are there."""
        await eventually(lambda: len(_nodes.present(self.book, node_id)) == count)


@asynccontextmanager
async def launching(plane: ControlPlane) -> AsyncIterator[Launcher]:
    """A launcher for the length of a block."""
    async with httpx.AsyncClient(timeout=20) as client:
        yield Launcher(plane, client)


@asynccontextmanager
async def listening(agent: Agent, drain_seconds: int = 1, host: str = "127.0.0.1") -> AsyncIterator[Lifetime]:
    """The agent on a port of its own, as `agent.run` serves it, without its signal handlers."""
    server = server_for(agent, host, 0, drain_seconds)
    server.config.log_level = "error"
    task = asyncio.create_task(server._serve())
    await eventually(lambda: server.started or task.done())
    try:
        yield agent.asgi.lifetime
    finally:
        server.should_exit = True
        await task


def processing(agent: Agent, execution_id: str) -> bool:
    """Whether a dispatched run is in progress there."""
    return execution_id in agent.asgi.lifetime.dispatches
