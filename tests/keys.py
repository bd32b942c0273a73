"""API keys on a test's database, and what a real `serve` needs beside it."""

import os
from collections.abc import Iterator
from typing import NamedTuple

import httpx
from sqlalchemy.ext.asyncio import AsyncEngine

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.storage.engine import make_engine, transaction
from tests.app import MASTER_KEY, SECRET
from tests.postgres import Database, run

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
SECRETS = {"HOLDSHORT_MASTER_KEYS": MASTER_KEY, "HOLDSHORT_WEBHOOK_SECRETS": SECRET}


OF_AN_OPERATOR = {"decision", "deliveries", "redrive"}
SCOPES = {"agent": ("agent",), "review": ("review",), "admin": ("admin",), "operator": ("review", "admin")}


class Keys(NamedTuple):
    """A key of each scope, and one of both that go together, as they were shown once."""

    agent: str
    review: str
    admin: str
    operator: str


class RightKey(httpx.Auth):
    """Sends the key that a route is for: a person decides and administers, an agent does the rest."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        last = request.url.path.rpartition("/")[2]
        request.headers["X-API-Key"] = self._keys.operator if last in OF_AN_OPERATOR else self._keys.agent
        yield request


def make_keys(database: Database) -> Keys:
    """Keep such keys on a database, which no `dev` stands open on from then."""
    return run(keep_keys(database))


def sent(key: str) -> dict[str, str]:
    """A key as the header of a request."""
    return {"X-API-Key": key}


def serving(database: Database) -> dict[str, str]:
    """The environment that `serve` starts in on a database that has keys."""
    return {"HOLDSHORT_DATABASE_URL": database.url, **SECRETS}


async def keep_keys(database: Database) -> Keys:
    """As `make_keys`, where a loop runs already."""
    engine = make_engine(database.url, 1)
    try:
        return Keys(*[await _kept(engine, name, *SCOPES[name]) for name in Keys._fields])
    finally:
        await engine.dispose()


async def keep_key(database: Database, name: str, *scopes: str) -> str:
    """One more key, with a name and scopes of its own."""
    engine = make_engine(database.url, 1)
    try:
        return await _kept(engine, name, *scopes)
    finally:
        await engine.dispose()


async def _kept(engine: AsyncEngine, name: str, *scopes: str) -> str:
    async with transaction(engine) as conn:
        wanted = Wanted(name=name, scopes=scopes)
        return (await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))[1]
