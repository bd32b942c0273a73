"""While history is pruned nobody waits, and whoever would pass over what is gone is told so."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from controlplane.http import events
from controlplane.services import pruning
from tests.app import Api, in_process, problem, served
from tests.factories import OPERATOR
from tests.http.test_the_stream_misses_nothing import Event, stream
from tests.postgres import Database
from tests.services.pruning import ended_runs, now, opened, prune
from tests.services.sealing import seal, verified
from tests.services.store import Store

RUNS = 3


@pytest.fixture
async def store(database: Database) -> AsyncIterator[Store]:
    async with opened(database) as made:
        yield made


async def test_a_decision_beside_a_pruning_does_not_wait(database: Database, store: Store):
    await ended_runs(store, RUNS)
    before = await now(store)
    async with in_process(database) as api:
        approval_id = await api.asked()
        async with store.tx() as conn:
            # The rows are deleted and nothing is committed: whatever this holds, it holds now.
            assert await pruning.prune(conn, before, RUNS, OPERATOR, exported=False) is not None
            decided = await api.decide(approval_id)
            assert await seal(store) > 0
        assert decided.status_code == 200
        assert (await api.get(f"/approvals/{approval_id}")).json()["history"][-1]["type"] == "approval.approved"
    await seal(store)
    await verified(store)


async def test_an_approval_stands_without_its_history(database: Database, store: Store):
    approval_id, *_ = await ended_runs(store, RUNS)
    await prune(store)
    async with in_process(database) as api:
        shown = (await api.get(f"/approvals/{approval_id}")).json()
        assert (shown["status"], shown["history"]) == ("approved", [])
        assert (await api.get("/executions/ended-1")).json()["status"] == "succeeded"
        again = await api.decide(approval_id, "rejected")
        assert problem(again) == (409, "already_decided")
        assert (await api.ask("a", "ended-1"))["approval_id"] == approval_id


async def refusal(api: Api, last_event_id: str) -> tuple[int, str]:
    headers = {"Last-Event-ID": last_event_id}
    reply: httpx.Response = await api.client.get("/api/v1/events", headers=headers)
    return problem(reply)


async def read_until(api: Api, type_: str, last_event_id: str | None = None) -> list[Event]:
    async with stream(api, last_event_id) as events_:
        return await events_.until(type_)


async def test_a_stream_that_would_pass_over_what_is_gone_is_refused(database: Database, store: Store):
    await ended_runs(store, RUNS)
    before = await now(store)
    await ended_runs(store, 1, first=9)
    async with served(database) as api:
        size = 6 * RUNS
        async with stream(api) as events_:
            seen = [await events_.next() for _ in range(size + 2)]
        await prune(store, before)
        for event in (seen[0], seen[size - 2]):
            assert await refusal(api, event.id) == (410, "events_pruned")
        beginning = base64.urlsafe_b64encode(b"0.0").decode()
        assert await refusal(api, beginning) == (410, "events_pruned")
        # Behind the last row that is gone nothing is missing.
        for event in (seen[size - 1], seen[size]):
            follows = await read_until(api, "history.pruned", event.id)
            assert follows[0].id == seen[seen.index(event) + 1].id
        kept = await read_until(api, "history.pruned")
        assert kept[0].id == seen[size].id


async def test_a_stream_that_is_behind_ends_where_something_is_missing(
    database: Database, store: Store, monkeypatch: pytest.MonkeyPatch
):
    await ended_runs(store, RUNS)

    monkeypatch.setattr(events, "BATCH", 2)
    look, pruned = events._look, asyncio.Event()

    async def look_once_and_then_late(*given: Any, **more: Any) -> Any:
        found = await look(*given, **more)
        if not pruned.is_set():
            pruned.set()
            await prune(store)
        return found

    monkeypatch.setattr(events, "_look", look_once_and_then_late)
    async with served(database) as api, stream(api) as events_:
        seen = [await events_.next() for _ in range(2)]
        with pytest.raises(EOFError):
            await events_.next()
        assert await refusal(api, seen[-1].id) == (410, "events_pruned")
