"""The application as tests run it: in this process without sockets, or served on loopback by the real protocol."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from litestar import Litestar

from controlplane.app import create_app
from controlplane.cli.serving.listening import endpoints, listen
from controlplane.cli.serving.server import config_of
from controlplane.domain import signatures, webhook_secrets
from controlplane.domain.egress import Endpoint
from controlplane.domain.vault import parse_master_keys
from controlplane.runtime import Runtime
from controlplane.settings import Settings
from tests.plain import PLAIN
from tests.postgres import Database

SECRET = "a-secret-of-enough-characters"
OTHER_SECRET = "another-secret-of-enough-characters"
MASTER_KEY = "bWFzdGVyLWtleS1vZi10aGUtdGVzdHMtb25seS4uLiE="
PATIENCE_SECONDS = 10.0
# Where an application without a socket is said to listen, as its client names no port.
UNSERVED = (Endpoint("127.0.0.1", 80),)


class Api:
    """A client of one application, with the calls that most tests make."""

    def __init__(self, app: Litestar, client: httpx.AsyncClient, base: str) -> None:
        self.app = app
        self.client = client
        self.base = base

    @property
    def runtime(self) -> Runtime:
        """What the application works with."""
        runtime: Runtime = self.app.state.runtime
        return runtime

    @property
    def port(self) -> int:
        """Where it listens, when it is served."""
        return int(self.base.rpartition(":")[2])

    async def get(self, path: str, **query: Any) -> httpx.Response:
        return await self.client.get(f"/api/v1{path}", params=query)

    async def post(self, path: str, body: Any = None) -> httpx.Response:
        return await self.client.post(f"/api/v1{path}", json={} if body is None else body)

    async def start(self, execution_id: str = "run-1", node_id: str = "node-1") -> None:
        reply = await self.post("/executions", {"node_id": node_id, "execution_id": execution_id})
        assert reply.status_code in {200, 201}, reply.text

    async def ask(self, request_id: str = "q-1", execution_id: str = "run-1", **fields: Any) -> dict[str, Any]:
        """Ask, and return the reply; the run must be there."""
        body = {"approval_request_id": request_id, **fields}
        reply = await self.post(f"/executions/{execution_id}/request-approval", body)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    async def asked(self, request_id: str = "q-1", execution_id: str = "run-1", **fields: Any) -> str:
        """Start a run that asks; the approval's id."""
        await self.start(execution_id)
        return str((await self.ask(request_id, execution_id, **fields))["approval_id"])

    async def decide(self, approval_id: str, decision: str = "approved", **fields: Any) -> httpx.Response:
        return await self.post(f"/approvals/{approval_id}/decision", {"decision": decision, **fields})

    async def webhook(self, body: Any, *, secret: str = SECRET, **headers: str) -> httpx.Response:
        """Post a webhook whose body alone is signed, unless a signature header is given."""
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        signed = {"X-Webhook-Signature": signatures.sign_hex(secret, raw)}
        return await self.client.post("/api/v1/webhooks/approval-response", content=raw, headers=headers or signed)


def settings_for(database: Database, **changes: Any) -> Settings:
    """Settings of a server on a test's database and on one machine, with two webhook senders."""
    fields: dict[str, Any] = {
        "database_url": database.url,
        "pool_size": 4,
        "master_keys": parse_master_keys(MASTER_KEY),
        "webhook_secrets": webhook_secrets.parse(f"desk:{SECRET},other:{OTHER_SECRET}"),
        "open_mode": True,
    }
    return Settings(**(fields | changes))


@asynccontextmanager
async def in_process(database: Database, *, workers: bool = False, **changes: Any) -> AsyncIterator[Api]:
    """An application that is called without a socket."""
    app = create_app(settings_for(database, **changes), workers=workers, own=UNSERVED)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)  # type: ignore[arg-type]
    async with alive(app), httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
        yield Api(app, client, "http://127.0.0.1")


@asynccontextmanager
async def served(database: Database, *, workers: bool = True, **changes: Any) -> AsyncIterator[Api]:
    """An application that listens on a loopback port."""
    sock = listen("127.0.0.1", 0)
    app = create_app(settings_for(database, **changes), workers=workers, own=endpoints(sock))
    config = config_of(app)
    config.timeout_graceful_shutdown = 2
    server = uvicorn.Server(config)
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    task = asyncio.create_task(server._serve([sock]))
    try:
        await until(lambda: server.started or task.done())
        async with httpx.AsyncClient(base_url=base, timeout=60, trust_env=False, verify=PLAIN) as client:
            yield Api(app, client, base)
    finally:
        app.state.runtime.stop()
        server.should_exit = True
        await task


@asynccontextmanager
async def alive(app: Litestar) -> AsyncIterator[None]:
    """Hold an application's lifespan in one task, as it must end where it began and fixtures do not."""
    begun, ending = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.lifespan():
            begun.set()
            await ending.wait()

    task = asyncio.create_task(live())
    try:
        await until(lambda: begun.is_set() or task.done())
        if begun.is_set():
            yield
    finally:
        ending.set()
        await task


async def until(condition: Callable[[], Any], *, seconds: float = PATIENCE_SECONDS) -> None:
    """Return once a condition holds; raises TimeoutError if it does not within the time."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)


def problem(reply: httpx.Response) -> tuple[int, str]:
    """The status and code of a problem document, which must be whole."""
    assert reply.headers["content-type"] == "application/problem+json", reply.text
    document = reply.json()
    assert {"type", "title", "status", "detail", "error", "message"} <= document.keys()
    assert document["status"] == reply.status_code
    return reply.status_code, str(document["error"])
