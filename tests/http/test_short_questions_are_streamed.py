"""The stream of short-lived questions: what waits first, then what comes and ends on any replica."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api, problem, served
from tests.feedback import EVENTS, Asker, submit
from tests.keys import SETUP
from tests.postgres import Database

ASKED = "blocking_human_feedback"
RESOLVED = "human_feedback_resolved"


class Stream:
    """An open stream, read event by event."""

    def __init__(self, reply: httpx.Response) -> None:
        self._lines = reply.aiter_lines()

    async def next(self) -> tuple[str, dict[str, Any]]:
        """The next event: its name and data."""
        async with asyncio.timeout(20):
            name = ""
            async for line in self._lines:
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                if line.startswith("data: "):
                    return name, json.loads(line.removeprefix("data: "))
        raise AssertionError("the stream ended")

    async def end(self) -> list[str]:
        """What is left of it, until it ends."""
        async with asyncio.timeout(20):
            return [line async for line in self._lines if line and not line.startswith(":")]


@asynccontextmanager
async def stream(api: Api, query: str = "", **headers: str) -> AsyncIterator[Stream]:
    async with api.client.stream("GET", EVENTS + query, headers=headers) as reply:
        assert reply.status_code == 200
        assert reply.headers["content-type"].startswith("text/event-stream")
        yield Stream(reply)


async def hangs(api: Api, *unique_ids: str) -> None:
    """Wait until a replica's board shows these, and no others."""
    async with asyncio.timeout(20):
        while api.runtime.board.unique_ids() != {*unique_ids}:
            await asyncio.sleep(0.005)


async def test_what_waits_comes_first_and_then_what_happens_anywhere(database: Database):
    async with served(database) as first, served(database) as second:
        asker = Asker()
        for unique_id in ("f-2", "f-1"):
            await asker.ask(first.client, unique_id, session_id="s")
        await hangs(second, "f-1", "f-2")
        async with stream(second) as events, stream(second, "?from=now") as news:
            name, told = await events.next()
            assert (name, told["request_id"]) == (ASKED, "f-2")
            assert (await events.next())[1]["request_id"] == "f-1"
            assert told.keys() == {
                *("request_id", "question", "kind", "options", "yes_label", "no_label", "allow_feedback"),
                *("context", "created_at", "expires_at", "session_id"),
            }
            choice = {"options": ["a", "b"], "timeout_seconds": 60}
            await asker.ask(first.client, "f-3", **choice)
            for each in (events, news):
                name, told = await each.next()
                assert (name, told["request_id"], told["kind"]) == (ASKED, "f-3", "multiple_choice")
                assert (told["options"], told["allow_feedback"]) == (["a", "b"], False)
                assert told["context"] == "This request expires in 60 seconds."
            assert (await submit(first.client, "a", "f-3")).status_code == 200
            await hangs(second, "f-1", "f-2")
            await first.client.delete("/api/v1/human-feedback/f-2")
            for each in (events, news):
                assert await each.next() == (RESOLVED, {"request_id": "f-3", "outcome": "answered"})
                assert await each.next() == (RESOLVED, {"request_id": "f-2", "outcome": "cancelled"})


async def test_an_end_that_nobody_made_is_told_too(database: Database, sql: Any):
    async with served(database) as api, stream(api) as events:
        for unique_id, moment, outcome in (("f-1", "expires_at", "expired"), ("f-2", "waiter_until", "cancelled")):
            await Asker().ask(api.client, unique_id)
            assert (await events.next())[0] == ASKED
            await sql.execute(f"UPDATE feedback SET {moment} = clock_timestamp() WHERE status = 'pending'")
            assert await events.next() == (RESOLVED, {"request_id": unique_id, "outcome": outcome})


async def test_without_listening_it_comes_within_the_poll(database: Database, figures: Any):
    async with served(database) as first, served(database, listen=False) as second, stream(second) as events:
        clock = asyncio.get_running_loop().time
        begun = clock()
        await Asker().ask(first.client)
        assert (await events.next())[0] == ASKED
        asked = clock() - begun
        assert (await submit(first.client, "x")).status_code == 200
        assert (await events.next())[0] == RESOLVED
        figures("short questions without LISTEN", seconds_until_shown=asked, until_both=clock() - begun)


async def test_it_ends_with_its_key_and_with_its_server(database: Database):
    async with served(database, open_mode=False) as api:
        keys = {}
        for name, scope in (("review", "review"), ("other", "review"), ("agent", "agent")):
            async with api.runtime.transaction() as conn:
                wanted = Wanted(name=name, scopes=(scope,))
                keys[name] = await access.create(conn, wanted, entropy=os.urandom(32), actor=SETUP)
        assert problem(await api.client.get(EVENTS, headers={"X-API-Key": keys["agent"][1]})) == (403, "not_allowed")
        async with (
            stream(api, **{"X-API-Key": keys["review"][1]}) as events,
            stream(api, **{"X-API-Key": keys["other"][1]}) as others,
        ):
            async with api.runtime.transaction() as conn:
                await access.revoke(conn, keys["review"][0].key_id, SETUP)
            assert await events.end() == []
            mine = {"X-API-Key": keys["agent"][1]}
            reply = await api.client.post("/api/v1/human-feedback", json=Asker().body(), headers=mine)
            assert reply.status_code == 201
            assert (await others.next())[0] == ASKED
            api.runtime.stop()
            assert await others.end() == []
