"""Control planes as processes that can be killed and started again on their port, and what agents and senders do."""

import asyncio
import itertools
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holdshort.webhooks import sign

from tests.app import MASTER_KEY
from tests.cli.processes import Running, ready
from tests.durability.wire import GONE, Reply, Wire

API = "/api/v1"
NODE = "agent"
SENDERS = {"desk": "desk-secret-0123456789", "other": "other-secret-0123456789"}
SECRETS = ",".join(f"{name}:{secret}" for name, secret in SENDERS.items())
START_SECONDS = 30.0
LAST_OF_THE_START = "Ctrl-C stops it.\n"
RETRY_SECONDS = 0.05


class Plane:
    """One control plane in open mode, always on the same port."""

    def __init__(self, database_url: str, **settings: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environ = {
            "HOLDSHORT_DATABASE_URL": database_url,
            "HOLDSHORT_WEBHOOK_SECRETS": SECRETS,
            "HOLDSHORT_MASTER_KEYS": MASTER_KEY,
            "HOLDSHORT_LOG_LEVEL": "error",
            **{f"HOLDSHORT_{name}": value for name, value in settings.items()},
        }
        self._running: Running | None = None

    @property
    def pid(self) -> int:
        assert self._running is not None
        return self._running.process.pid

    def launch(self) -> None:
        """Start the process; decisions can be taken once `wait_until_ready` returns."""
        self._running = Running("dev", "--port", str(self.port), **self._environ)

    def wait_until_ready(self) -> None:
        assert self._running is not None
        deadline = time.monotonic() + START_SECONDS
        while not ready(self.url):
            assert self._running.process.poll() is None, "".join(self._running.seen)
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def start(self) -> None:
        self.launch()
        self.wait_until_ready()

    def kill(self) -> None:
        """SIGKILL: nothing in the process runs any more."""
        assert self._running is not None
        self._running.kill()
        self._running.close()

    def stop(self) -> None:
        """SIGTERM, and wait until it has ended."""
        if self._running is not None and self._running.process.poll() is None:
            self._running.terminate()
        if self._running is not None:
            self._running.close()

    def faults(self) -> list[str]:
        """What it logged, which is errors and nothing less."""
        assert self._running is not None
        lines = self._running.printed()
        return lines[lines.index(LAST_OF_THE_START) + 1 :] if LAST_OF_THE_START in lines else lines

    def memory(self) -> int:
        """The resident memory of the process, in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


@contextmanager
def planes(database_url: str, count: int = 1, **settings: str) -> Iterator[list[Plane]]:
    """As many control planes on one database, ready, for the length of a block."""
    started = [Plane(database_url, **settings) for _ in range(count)]
    try:
        for plane in started:
            plane.launch()
        for plane in started:
            plane.wait_until_ready()
        yield started
    finally:
        for plane in started:
            plane.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def ask(wire: Wire, execution_id: str, request_id: str, **more: Any) -> dict[str, Any]:
    """Start a run, or find it, and ask one question in it; the approval."""
    made = await wire.call("POST", f"{API}/executions", {"node_id": NODE, "execution_id": execution_id})
    assert made.status in (200, 201), made
    return await ask_more(wire, execution_id, request_id, **more)


async def ask_more(wire: Wire, execution_id: str, request_id: str, **more: Any) -> dict[str, Any]:
    """Ask a question in a run that is there."""
    body = {"approval_request_id": request_id, **more}
    asked = await wire.call("POST", f"{API}/executions/{execution_id}/request-approval", body)
    assert asked.status == 200, asked
    found: dict[str, Any] = asked.body
    return found


class Webhook:
    """A signed decision, ready to be sent as often as it takes; every copy has the same bytes and the same id."""

    path = f"{API}/webhooks/approval-response"
    _numbers = itertools.count(1)

    def __init__(self, execution_id: str | None, request_id: str, decision: str, **more: Any) -> None:
        named = {} if execution_id is None else {"executionId": execution_id}
        self.body = json.dumps({"requestId": request_id, "decision": decision, **named, **more}).encode()
        self.webhook_id = f"msg_{next(self._numbers)}"

    def headers(self, sender: str = "desk", **options: Any) -> dict[str, str]:
        """Its signature, in the standard scheme and of now unless another is wanted."""
        known = {"now": int(time.time()), "webhook_id": self.webhook_id} | options
        return {"Content-Type": "application/json"} | sign(SENDERS[sender], self.body, **known)

    async def post(self, wire: Wire, sender: str = "desk") -> Reply:
        return await wire.call("POST", self.path, self.body, self.headers(sender))

    def send(self, wire: Wire, sender: str = "desk") -> None:
        """Write it onto an open connection and do not wait."""
        wire.send("POST", self.path, self.body, self.headers(sender))

    async def post_until_taken(self, wire: Wire, *, patience: float = 120.0) -> tuple[Reply, int]:
        """Send it as a review service does: again after every failure that may pass; the answer, and the tries."""
        async with asyncio.timeout(patience):
            for tries in itertools.count(1):
                try:
                    reply = await self.post(wire)
                except GONE:
                    reply = Reply(0, None)
                if 0 < reply.status < 500:
                    return reply, tries
                await asyncio.sleep(RETRY_SECONDS)
        raise AssertionError


async def until(condition: Callable[[], Awaitable[bool]], *, seconds: float = 30.0, every: float = 0.02) -> float:
    """Look until a condition holds, and fail when it does not in time; the seconds it took."""
    begun = time.monotonic()
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(every)
    return time.monotonic() - begun
