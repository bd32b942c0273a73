"""Agents are only taken for dead by a process that would have heard them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.runtime import Runtime
from controlplane.workers.leases import Follower, Leases, Watch
from tests.app import Api, in_process
from tests.factories import NOW
from tests.postgres import Database

SECOND = timedelta(seconds=1)
HERE, THERE = "http://127.0.0.1:9001", "http://127.0.0.1:9002"


def watched(*seconds: float) -> timedelta:
    """For how long a watch has gone on after looks at these seconds."""
    watch = Watch()
    return [watch.look(NOW + timedelta(seconds=each)) for each in seconds][-1]


def test_a_watch_counts_from_its_first_look():
    assert watched(100) == timedelta()
    assert watched(100, 101, 105, 110) == 10 * SECOND


@pytest.mark.parametrize("gap", [5.001, 60, 86_400, -0.001, -3600])
def test_a_gap_or_a_clock_that_was_set_begins_it_anew(gap: float):
    assert watched(100, 101, 101 + gap) == timedelta()
    assert watched(100, 101, 101 + gap, 103 + gap) == 2 * SECOND


def test_a_look_that_failed_begins_it_anew():
    watch = Watch()
    watch.look(NOW)
    watch.end()
    assert watch.look(NOW + SECOND) == timedelta()


@pytest.fixture
async def api(database: Database) -> AsyncIterator[Api]:
    async with in_process(database) as made:
        yield made


@pytest.fixture
async def sql(database: Database) -> AsyncIterator[Any]:
    connection = await database.connect()
    yield connection
    await connection.close()


async def register(api: Api, instance_id: str = "i1", base_url: str = HERE) -> None:
    body = {"node_id": "node-1", "instance_id": instance_id, "base_url": base_url, "features": {"replay": True}}
    reply = await api.post("/nodes/register", body)
    assert reply.status_code == 201, reply.text


async def states(api: Api) -> list[str]:
    reply = await api.get("/nodes/node-1")
    return [each["status"] for each in reply.json()["instances"]]


async def on_watch(sql: Any, *, seconds: float) -> Watch:
    """A watch that has gone on for so long by the database's clock."""
    watch, now = Watch(), await sql.fetchval("SELECT clock_timestamp()")
    for ago in (seconds * part / 10 for part in range(10, -1, -1)):
        watch.look(now - timedelta(seconds=ago))
    return watch


PASS_LEASES = "UPDATE instances SET lease_until = clock_timestamp() - interval '1 min'"


async def test_a_control_plane_that_starts_again_waits_for_their_signs(api: Api, sql: Any):
    await register(api)
    await sql.execute(PASS_LEASES)
    leases = Leases(api.runtime)
    for _ in range(3):
        assert await leases.step() == 1.0
    assert await states(api) == ["live"]
    assert (await api.post("/nodes/node-1/heartbeat", {"instance_id": "i1"})).status_code == 200


async def test_who_says_nothing_while_it_is_watched_is_gone(api: Api, sql: Any):
    await register(api)
    await sql.execute(PASS_LEASES)
    assert await Leases(api.runtime, await on_watch(sql, seconds=14)).step() == 1.0
    assert await states(api) == ["live"]
    await Leases(api.runtime, await on_watch(sql, seconds=15)).step()
    assert await states(api) == ["gone"]
    assert (await api.post("/nodes/node-1/heartbeat", {"instance_id": "i1"})).status_code == 404


async def test_a_database_that_was_away_was_deaf_itself(api: Api, sql: Any, monkeypatch: pytest.MonkeyPatch):
    await register(api)
    await sql.execute(PASS_LEASES)
    leases = Leases(api.runtime, await on_watch(sql, seconds=20))
    with monkeypatch.context() as patched:
        patched.setattr(Runtime, "transaction", _away)
        with pytest.raises(DatabaseUnavailable):
            await leases.step()
    await leases.step()
    assert await states(api) == ["live"]


def _away(_: Runtime) -> Any:
    raise DatabaseUnavailable


async def test_a_batch_is_followed_at_once_by_the_next(api: Api, sql: Any):
    for number in range(101):
        await register(api, f"i{number}", f"http://127.0.0.1:{9000 + number}")
    await sql.execute(PASS_LEASES)
    leases = Leases(api.runtime, await on_watch(sql, seconds=15))
    assert await leases.step() == 0.0
    assert await leases.step() == 1.0
    assert set(await states(api)) == {"gone"}


async def test_the_follower_moves_what_is_left_and_forgets_once_an_hour(
    api: Api, sql: Any, monkeypatch: pytest.MonkeyPatch
):
    now = 1000.0
    monkeypatch.setattr(Runtime, "monotonic", lambda _: now)
    follower = Follower(api.runtime)
    await register(api)
    approval_id = await api.asked(callback_url=HERE + "/cb")
    await api.decide(approval_id)
    await api.asked("q-2", "run-2", callback_url=HERE + "/cb")
    await api.post("/nodes/node-1/shutdown", {"instance_id": "i1"})
    assert await follower.step() == 1.0
    await register(api, "i2", THERE)
    assert await follower.step() == 0.0
    assert await follower.step() == 1.0
    assert await sql.fetchval("SELECT url FROM deliveries") == THERE + "/cb"
    assert await sql.fetchval("SELECT callback_url FROM approvals WHERE status = 'pending'") == THERE + "/cb"

    await sql.execute("UPDATE instances SET gone_at = clock_timestamp() - interval '8 d' WHERE status = 'gone'")
    now += 3599
    await follower.step()
    assert sorted(await states(api)) == ["gone", "live"]
    now += 1
    await follower.step()
    assert await states(api) == ["live"]
