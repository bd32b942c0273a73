"""An agent of plain sockets: it takes what the control plane sends, answers as it is told to, and calls as it likes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.durability.plane import API, NODE
from tests.durability.wire import Reply, Wire
from tests.receiver import Got, Receiver, receiver, reply

FENCE = "X-Holdshort-Fence"
ACCEPTED = reply(202, b'{"status": "processing"}')
LONG_LEASE = 3600
CANCEL = "/_internal/"


class Hold(NamedTuple):
    """A run as it was given to an agent: which one, and under which fence it calls."""

    execution_id: str
    fence: int

    async def ask(self, wire: Wire, request_id: str = "q", **more: Any) -> Reply:
        return await self.call(wire, "request-approval", {"approval_request_id": request_id, **more})

    async def step(self, wire: Wire, name: str, result: Any = None, **more: Any) -> Reply:
        body = {"name": name, "occurrence": 1, "previous": None, "result": result, **more}
        return await self.call(wire, "steps", body)

    async def note(self, wire: Wire, note_id: str = "note") -> Reply:
        return await self.call(wire, "notes", {"note_id": note_id, "message": "a note"})

    async def report(self, wire: Wire, status: str = "succeeded", **more: Any) -> Reply:
        return await self.call(wire, "status", {"status": status, **more})

    async def call(self, wire: Wire, route: str, body: Any) -> Reply:
        return await wire.call("POST", f"{API}/executions/{self.execution_id}/{route}", body, self.headers)

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/json", FENCE: str(self.fence)}


class PlainAgent:
    """One address of a node. `told.answers` says how what comes is answered; taken, unless something else is set."""

    def __init__(self, told: Receiver) -> None:
        self.told = told
        told.answers = [ACCEPTED]

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.told.port}"

    async def register(self, wire: Wire, instance_id: str, *reasoners: Any, **changes: Any) -> None:
        """Become an instance of the node, for as long as a test may last."""
        body = {
            "node_id": NODE,
            "instance_id": instance_id,
            "base_url": self.base_url,
            "reasoners": [{"name": each} if isinstance(each, str) else each for each in reasoners or ("work",)],
            "features": {"replay": True, "fence": True},
            "lease_seconds": LONG_LEASE,
            **changes,
        }
        registered = await wire.call("POST", f"{API}/nodes/register", body)
        assert registered.status == 201, registered

    async def given(self, count: int = 1, *, seconds: float = 30) -> list[Hold]:
        """What was given to it to run, once that are so many."""
        await self.told.wait_for(count, seconds=seconds)
        return [_hold(got) for got in self.told.got if not got.path.startswith(CANCEL)]

    @property
    def cancelled(self) -> list[Got]:
        """What it was told to stop."""
        return [got for got in self.told.got if got.path.startswith(CANCEL)]


def _hold(got: Got) -> Hold:
    return Hold(got.headers["x-execution-id"], int(got.headers["x-holdshort-fence"]))


@asynccontextmanager
async def plain_agent() -> AsyncIterator[PlainAgent]:
    """One that listens for the length of a block."""
    async with receiver() as told:
        yield PlainAgent(told)


async def start(wire: Wire, reasoner: str = "work", node: str = NODE, **given: Any) -> str:
    """Have a reasoner run; the execution's id."""
    queued = await wire.call("POST", f"{API}/execute/async/{node}.{reasoner}", {"input": given})
    assert queued.status == 202, queued
    return str(queued.body["execution_id"])
