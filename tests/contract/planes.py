"""A real control plane for the SDK: a server process on a loopback port, which can be killed and started again."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

import holdshort
from holdshort import Agent, ApprovalFilter, AsyncClient
from holdshort._serving import server_for

from tests.app import MASTER_KEY
from tests.cli.processes import Running
from tests.postgres import Database

Value = TypeVar("Value")

SENDER = "reviews"
SECRET = secrets.token_hex(24)
PATIENCE_SECONDS = 20.0


class Plane:
    """One control plane on one database, in open mode."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._process = self._start("0")
        self.url = self._process.wait_until_ready()

    def _start(self, port: str) -> Running:
        environ = {
            "HOLDSHORT_DATABASE_URL": self._database.url,
            "HOLDSHORT_WEBHOOK_SECRETS": f"{SENDER}:{SECRET}",
            "HOLDSHORT_MASTER_KEYS": MASTER_KEY,
        }
        return Running("dev", "--port", port, **environ)

    def kill(self) -> None:
        """End it as a power cut does."""
        self._process.kill()
        self._process.close()

    def start(self) -> None:
        """Start it again on the same port."""
        self._process = self._start(self.url.rpartition(":")[2])
        self._process.wait_until_ready()

    def close(self) -> None:
        self._process.close()


@contextmanager
def serving(database: Database) -> Iterator[Plane]:
    """A control plane for the length of a block."""
    plane = Plane(database)
    try:
        yield plane
    finally:
        plane.close()


@asynccontextmanager
async def listening(agent: Agent) -> AsyncIterator[None]:
    """The agent on a loopback port of its own, as `agent.run` serves it, without its signal handlers."""
    server = server_for(agent, "127.0.0.1", 0, 1)
    task = asyncio.create_task(server._serve())
    await until(lambda: value(server.started or task.done()), bool)
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def registered(client: AsyncClient, node: str, reasoner: str, count: int = 1) -> None:
    """Wait until so many instances of a node are there that have a reasoner: a program listens before it registers."""

    async def look() -> int:
        found = (await client.list_nodes(limit=200)).nodes
        there = [each for shown in found if shown.node_id == node for each in shown.instances]
        return sum(each.status == "live" and reasoner in each.reasoners for each in there)

    await until(look, lambda there: there == count)


async def asked(client: AsyncClient, request_id: str, *, count: int = 1, round_: int = 1) -> list[holdshort.Approval]:
    """The pending approvals under a request id in a round, once there are so many."""

    async def look() -> list[holdshort.Approval]:
        found = await client.list_approvals(ApprovalFilter(status="pending", approval_request_id=request_id))
        return [approval for approval in found.approvals if approval.round == round_]

    return await until(look, lambda found: len(found) == count)


async def questioned(client: AsyncClient, unique_id: str) -> holdshort.FeedbackQuestion:
    """The short-lived question under an id, once it waits for a person."""

    async def look() -> list[holdshort.FeedbackQuestion]:
        return [each for each in (await client.pending_feedback()).requests if each.unique_id == unique_id]

    return (await until(look, bool))[0]


async def until(look: Callable[[], Awaitable[Value]], holds: Callable[[Value], bool]) -> Value:
    """What `look` returns, once it holds; raises TimeoutError after 20 s."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds(found := await look()):
            await asyncio.sleep(0.01)
        return found


async def value(found: Value) -> Value:
    """What is there already, for `until`."""
    return found
