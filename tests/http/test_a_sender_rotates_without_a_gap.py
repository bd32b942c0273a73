"""Two servers on one database: a sender's secrets change at one command, and no good signature is refused meanwhile."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from tests.app import MASTER_KEY, SECRET, Api, served, until
from tests.cli.processes import run
from tests.postgres import Database
from tests.senders import Senders

KNOWN_WITHIN = 5.0
# Decides nothing and needs no approval, so that only the signature is judged.
EVENT = {"type": "request.opened", "data": {"requestId": "q-1"}}


class Pair(NamedTuple):
    """Two servers, and the shell beside them."""

    servers: tuple[Api, Api]
    environ: dict[str, str]

    @property
    def senders(self) -> Senders:
        """The service, as the shell calls it, without waiting for the servers."""
        return Senders(self.servers[0].runtime.transaction)

    async def shell(self, *command: str) -> dict[str, Any]:
        """Run `holdshort senders ...` and read what it printed."""
        done = await asyncio.to_thread(run, "senders", *command, "--json", **self.environ)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    async def answers(self, secret: str) -> list[int]:
        """What each server says of a webhook that is signed with a secret."""
        return [(await server.webhook(EVENT, secret=secret)).status_code for server in self.servers]


class Writer:
    """A sender that goes on signing with whatever secret it has, at both servers in turn."""

    def __init__(self, pair: Pair, secret: str) -> None:
        self.pair = pair
        self.secret = secret
        self.seen = Counter[tuple[str, int]]()
        self.stopping = False

    async def write(self) -> None:
        while not self.stopping:
            for server in self.pair.servers:
                secret = self.secret
                reply = await server.webhook(EVENT, secret=secret)
                self.seen[secret, reply.status_code] += 1
                assert reply.status_code == 200, reply.text
            await asyncio.sleep(0.01)

    async def has_written(self, secret: str) -> None:
        """Return once some more were taken that were signed with a secret."""
        before = self.seen[secret, 200]
        await until(lambda: self.seen[secret, 200] >= before + 10)


@pytest.fixture
async def pair(database: Database) -> AsyncIterator[Pair]:
    """Two servers that no setting gives a webhook secret."""
    environ = {"HOLDSHORT_DATABASE_URL": database.url, "HOLDSHORT_MASTER_KEYS": MASTER_KEY}
    async with served(database, webhook_secrets=()) as one, served(database, webhook_secrets=()) as other:
        yield Pair((one, other), environ)


async def refused_everywhere(pair: Pair, secret: str, seconds: float = KNOWN_WITHIN) -> None:
    async with asyncio.timeout(seconds):
        while 200 in await pair.answers(secret):
            await asyncio.sleep(0.05)


async def taken_everywhere(pair: Pair, secret: str) -> None:
    async with asyncio.timeout(KNOWN_WITHIN):
        while await pair.answers(secret) != [200, 200]:
            await asyncio.sleep(0.2)


async def test_what_the_command_prints_is_taken_at_once_and_the_old_one_as_long_as_it_holds(pair: Pair):
    assert await pair.answers(SECRET) == [503, 503]
    first = await pair.senders.create("legal")
    await taken_everywhere(pair, first)
    writer = Writer(pair, first)
    writing = asyncio.create_task(writer.write())
    await writer.has_written(first)
    rotated = await pair.shell("rotate", "legal")
    await writer.has_written(first)
    writer.secret = rotated["secret"]
    await writer.has_written(rotated["secret"])
    await pair.shell("revoke", "legal", "--secret", *rotated["others"])
    await writer.has_written(rotated["secret"])
    writer.stopping = True
    await writing
    assert {status for _, status in writer.seen} == {200}
    assert await pair.answers(first) == [401, 401]


async def test_a_revoked_sender_is_refused_by_every_server_within_five_seconds(pair: Pair):
    legal, crm = await pair.senders.create("legal"), await pair.senders.create("crm")
    await taken_everywhere(pair, legal)
    await taken_everywhere(pair, crm)
    await pair.senders.revoke("legal")
    await refused_everywhere(pair, legal)
    assert await pair.answers(crm) == [200, 200]


async def test_when_the_command_has_ended_the_sender_is_out_everywhere(pair: Pair):
    legal = await pair.senders.create("legal")
    await taken_everywhere(pair, legal)
    assert len((await pair.shell("revoke", "legal"))["ended"]) == 1
    assert await pair.answers(legal) == [503, 503]


async def test_an_overlap_ends_by_itself_on_every_server(pair: Pair):
    old = await pair.senders.create("legal")
    await taken_everywhere(pair, old)
    new, _ = await pair.senders.rotate("legal", overlap=10)
    await taken_everywhere(pair, new)
    assert await pair.answers(old) == [200, 200]
    await refused_everywhere(pair, old, seconds=10 + KNOWN_WITHIN)
    assert await pair.answers(new) == [200, 200]
