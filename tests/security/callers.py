"""Callers with keys of their own, and every route of the table as something to be called."""

import json
import os
import re
from functools import reduce
from typing import Any, NamedTuple

import httpx

from controlplane.domain.access import Access
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.http.routes import TABLE
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
_PLACE = re.compile(r"\{(\w+):str\}")


class Key(NamedTuple):
    """A key as it was made: its id, and its text as it was shown once."""

    key_id: str
    text: str


class Route(NamedTuple):
    """A method and a path of the API, with what the table says it is for; the path has its names in braces."""

    method: str
    path: str
    purpose: Access

    @property
    def names(self) -> set[str]:
        return set(_PLACE.findall(self.path))

    def at(self, **values: str) -> str:
        """The path with values for its names."""
        return reduce(lambda path, name: path.replace(f"{{{name}:str}}", values[name]), self.names, self.path)


class Caller:
    """Calls an application with one key; every answer is kept in `answers`."""

    def __init__(self, api: Api, key: Key) -> None:
        self.api = api
        self.key = key
        self.answers: list[httpx.Response] = []

    async def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """Send a body as JSON, or bytes as they are."""
        content = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        sent = {"X-API-Key": self.key.text, **headers}
        if method != "GET":
            sent = {"Content-Type": "application/json", **sent}
        reply = await self.api.client.request(
            method, under(path), headers=sent, content=None if method == "GET" else content
        )
        self.answers.append(reply)
        return reply

    async def must(self, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """As a call, which must succeed; its JSON."""
        reply = await self(method, path, body, **headers)
        assert reply.is_success, (path, reply.text)
        return dict(reply.json())

    async def asks(self, execution_id: str, node_id: str, request_id: str = "q", **fields: Any) -> str:
        """Start a run of a node and ask in it; the approval's id."""
        await self.must("POST", "/executions", {"node_id": node_id, "execution_id": execution_id})
        body = {"approval_request_id": request_id, **fields}
        return str((await self.must("POST", f"/executions/{execution_id}/request-approval", body))["approval_id"])

    async def registers(self, node_id: str, reasoner: str = "work") -> None:
        """Register a process of a node; nothing listens there."""
        base = f"http://127.0.0.1:9/{node_id}"
        body = {"id": node_id, "base_url": base, "reasoners": [{"id": reasoner}], "instance_id": f"{node_id}-1"}
        await self.must("POST", "/nodes/register", body)


def under(path: str) -> str:
    """A path as it is asked; most stand under one prefix."""
    return path if path.startswith("/api/") else f"/api/v1{path}"


async def made(api: Api, **wanted: Any) -> Key:
    """Make a key; see `services.access.Wanted`."""
    wanted.setdefault("name", "-".join(wanted["scopes"]))
    async with api.runtime.transaction() as conn:
        key, text = await access.create(conn, Wanted(**wanted), entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)
    return Key(key.key_id, text)


async def caller(api: Api, *scopes: str, **wanted: Any) -> Caller:
    """A caller with a new key."""
    key = await made(api, scopes=scopes, **wanted)
    await api.runtime.settle_access()
    return Caller(api, key)


def routes() -> list[Route]:
    """Every method and path of the API."""
    return [
        Route(method, path, purpose)
        for purpose, handlers in TABLE.items()
        for handler in handlers
        for path in sorted(handler.paths)
        for method in sorted(handler.http_methods - {"OPTIONS"})
    ]


async def count(api: Api, query: str, *values: object) -> int:
    """A number that the database knows."""
    connection = await api.runtime.engine.raw_connection()
    try:
        driver: Any = connection.driver_connection
        return int(await driver.fetchval(query, *values))
    finally:
        connection.close()
