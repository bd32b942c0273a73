"""A try that was taken over, in whatever way and at whatever moment, leaves the delivery as it is."""

import asyncio

from controlplane.domain.deliveries import Attempt, Claimed, judge
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import deliveries
from controlplane.storage.outbox import Tried
from tests.services.store import Rows, Store

TAKES_OVER = [
    ("UPDATE deliveries SET fence = fence + 1, url = 'http://elsewhere/'", Attempt(200)),
    ("UPDATE deliveries SET status = 'obsolete', settled_at = clock_timestamp()", Attempt(500)),
]


async def claim_of(store: Store, count: int) -> list[Claimed]:
    """Claims of as many decided approvals of one run, each for a receiver of its own, in order of their ids."""
    await store.start()
    for number in range(count):
        approval = await store.ask(f"a{number}", callback_url=f"http://127.0.0.1:{9000 + number}/")
        await store.decide(approval.approval_id)
    return sorted(await store.claim(), key=lambda claimed: claimed.delivery_id)


def tried(claims: list[Claimed], *statuses: int) -> list[Tried]:
    return [
        Tried(claimed, judge(claimed, Attempt(status), jitter=0.5), status)
        for claimed, status in zip(claims, statuses, strict=True)
    ]


async def test_several_are_settled_at_once_and_only_those_still_held(store: Store, rows: Rows):
    claims = await claim_of(store, 4)
    taken = claims[1].delivery_id
    await rows.sql.execute("UPDATE deliveries SET fence = fence + 1 WHERE delivery_id = $1", taken)
    async with store.tx() as conn:
        settled = await deliveries.settle(conn, tried(claims, 200, 200, 500, 410))
    assert settled == {claimed.delivery_id for claimed in claims} - {taken}
    kept = "SELECT status || ' ' || coalesce(last_status::text, '-') FROM deliveries ORDER BY delivery_id"
    assert await rows.column(kept) == ["delivered 200", "pending -", "pending 500", "dead 410"]
    facts = await rows.column("SELECT type FROM history WHERE type LIKE 'delivery%' ORDER BY type")
    assert facts == ["delivery.dead", "delivery.delivered"]


async def test_who_waits_for_the_one_that_takes_over_writes_nothing(store: Store, rows: Rows, watcher: Rows):
    for claimed, (takes, attempt) in zip(await claim_of(store, len(TAKES_OVER)), TAKES_OVER, strict=True):
        async with rows.holding(f"{takes} WHERE delivery_id = $1", claimed.delivery_id):
            (settling,) = await watcher.queue(store.settle(claimed, attempt))
        assert not await settling
    assert await rows.column("SELECT status FROM deliveries ORDER BY delivery_id") == ["pending", "obsolete"]
    assert await rows.value("SELECT count(*) FROM deliveries WHERE last_status IS NOT NULL") == 0


async def test_settling_and_the_runs_end_never_deadlock(store: Store, rows: Rows, watcher: Rows):
    claims = await claim_of(store, 3)

    async def settle_backwards() -> set[str]:
        async with store.tx() as conn:
            return await deliveries.settle(conn, tried(claims[::-1], 200, 200, 200))

    async with rows.holding("SELECT 1 FROM deliveries WHERE delivery_id = $1 FOR UPDATE", claims[1].delivery_id):
        tasks = await watcher.queue(settle_backwards(), store.report(ExecutionStatus.SUCCEEDED))
    settled, _ = await asyncio.gather(*tasks)
    assert len(settled) == 3
    assert await rows.column("SELECT DISTINCT status FROM deliveries") == ["delivered"]
