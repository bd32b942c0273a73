"""API keys on a test's database, and what a real `serve` needs beside it."""

import os
from typing import NamedTuple

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.storage.engine import make_engine, transaction
from tests.app import MASTER_KEY, SECRET
from tests.postgres import Database, run

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
SECRETS = {"HOLDSHORT_MASTER_KEYS": MASTER_KEY, "HOLDSHORT_WEBHOOK_SECRETS": SECRET}


SCOPES = {"agent": ("agent",), "review": ("review",), "admin": ("admin",), "operator": ("review", "admin")}


class Keys(NamedTuple):
    """A key of each scope, and one of both that go together, as they were shown once."""

    agent: str
    review: str
    admin: str
    operator: str


def make_keys(database: Database) -> Keys:
    """Keep such keys on a database, which no `dev` stands open on from then."""
    return run(_make(database))


def sent(key: str) -> dict[str, str]:
    """A key as the header of a request."""
    return {"X-API-Key": key}


def serving(database: Database) -> dict[str, str]:
    """The environment that `serve` starts in on a database that has keys."""
    return {"HOLDSHORT_DATABASE_URL": database.url, **SECRETS}


async def _make(database: Database) -> Keys:
    engine = make_engine(database.url, 1)
    try:
        async with transaction(engine) as conn:
            made = [
                await access.create(
                    conn, Wanted(name=name, scopes=SCOPES[name]), entropy=os.urandom(ENTROPY_BYTES), actor=SETUP
                )
                for name in Keys._fields
            ]
    finally:
        await engine.dispose()
    return Keys(*[text for _, text in made])
