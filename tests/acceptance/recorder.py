"""A proxy between an agent and its control plane; keeps every request with its answer, in the order of the answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import uvicorn

Scope = dict[str, Any]


class Call(NamedTuple):
    """One request of the agent, and how it was answered; `body` is its JSON, None where it is none."""

    method: str
    path: str
    body: Any
    status: int


class Recorder:
    """A proxy. `url` is what the agent takes for its control plane."""

    def __init__(self, upstream: httpx.AsyncClient) -> None:
        self.url = ""
        self.calls: list[Call] = []
        self._upstream = upstream

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message.get("more_body"):
                break
        path = scope["raw_path"].decode()
        query = f"?{scope['query_string'].decode()}" if scope["query_string"] else ""
        headers = [(name, value) for name, value in scope["headers"] if name not in (b"host", b"connection")]
        reply = await self._upstream.request(scope["method"], path + query, content=body, headers=headers)
        self.calls.append(Call(scope["method"], path, _json(body), reply.status_code))
        kept = [(name, value) for name, value in reply.headers.raw if name.lower() != b"transfer-encoding"]
        await send({"type": "http.response.start", "status": reply.status_code, "headers": kept})
        await send({"type": "http.response.body", "body": reply.content})


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


@asynccontextmanager
async def recorder(upstream: str, port: int) -> AsyncIterator[Recorder]:
    """A proxy on a loopback port for the length of a block."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=200)
    async with httpx.AsyncClient(base_url=upstream, timeout=60, trust_env=False, limits=limits) as client:
        made = Recorder(client)
        made.url = f"http://127.0.0.1:{port}"
        config = uvicorn.Config(
            made, host="127.0.0.1", port=port, lifespan="off", ws="none", log_config=None, access_log=False
        )
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve())
        while not server.started:
            assert not serving.done()
            await asyncio.sleep(0.01)
        try:
            yield made
        finally:
            server.should_exit = True
            await serving
