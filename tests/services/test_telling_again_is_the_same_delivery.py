"""One delivery an approval, for ever: telling again moves it, fences off the try in flight, and is never a flood."""

from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.domain.deliveries import Attempt, Claimed, DeliveryStatus
from controlplane.domain.errors import DeliveryNotFound, DeliverySettled
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import deliveries
from controlplane.storage import deliveries as kept
from tests.factories import CALLBACK, OPERATOR
from tests.services.store import Rows, Store

ELSEWHERE = "http://127.0.0.1:10/elsewhere"
ROW = "SELECT url, secret, status, fence, attempts, lease_until, writing_fence, settled_at FROM deliveries"
PAUSE = "SELECT extract(epoch FROM due_at - last_attempt_at)::float FROM deliveries"


async def decided(store: Store, **asked: Any) -> str:
    await store.start()
    approval = await store.ask(**({"callback_url": CALLBACK, "callback_secret": "old"} | asked))
    await store.decide(approval.approval_id)
    return approval.approval_id


async def the_claim(store: Store) -> Claimed:
    (claimed,) = await store.claim()
    return claimed


async def test_a_decision_is_told_at_once_to_the_newest_address(store: Store):
    await store.start()
    approval = await store.ask(callback_url=CALLBACK, callback_secret="old")
    await store.set_callback(approval.approval_id, ELSEWHERE, "new")
    await store.decide(approval.approval_id)
    claimed = await the_claim(store)
    assert (claimed.url, claimed.secret, claimed.attempts, claimed.fence) == (ELSEWHERE, "new", 1, 1)
    assert claimed.approval.status is ApprovalStatus.APPROVED
    assert claimed.approval.new_status is ExecutionStatus.RUNNING


async def test_another_address_is_history_and_the_same_one_is_not(store: Store, rows: Rows):
    await store.start()
    for url in (CALLBACK, CALLBACK, ELSEWHERE, ELSEWHERE):
        await store.ask(callback_url=url, callback_secret=f"new for {url}")
    assert (await rows.history()).count("approval.callback_changed") == 1


async def test_nothing_is_told_without_an_address(store: Store, rows: Rows):
    await decided(store, callback_url=None)
    assert await rows.value("SELECT count(*) FROM deliveries") == 0
    assert not store.changes.due


@pytest.mark.parametrize("on_expiry", list(OnExpiry))
async def test_an_expiry_is_told_too(store: Store, rows: Rows, on_expiry: OnExpiry):
    await store.start()
    approval = await store.ask(callback_url=CALLBACK, on_expiry=on_expiry)
    await rows.pass_deadline(approval.approval_id)
    await store.sweep()
    assert (await the_claim(store)).approval.status is ApprovalStatus.EXPIRED


async def test_a_new_address_after_the_end_tells_again(store: Store, rows: Rows):
    approval_id = await decided(store)
    (first,) = await store.deliver()
    shown = await store.set_callback(approval_id, ELSEWHERE, "new")
    assert store.changes.due
    assert (shown.callback_url, shown.callback_secret) == (ELSEWHERE, "new")
    row = await rows.sql.fetchrow(ROW)
    assert row is not None
    assert dict(row) == {
        "url": ELSEWHERE,
        "secret": "new",
        "status": "pending",
        "fence": first.fence + 1,
        "attempts": 0,
        "lease_until": None,
        "writing_fence": None,
        "settled_at": None,
    }
    assert await rows.column("SELECT delivery_id FROM deliveries") == [first.delivery_id]


async def test_an_address_that_comes_only_after_the_end_makes_the_delivery(store: Store):
    approval_id = await decided(store, callback_url=None)
    await store.set_callback(approval_id, ELSEWHERE)
    assert (await the_claim(store)).url == ELSEWHERE


async def test_a_try_in_flight_cannot_settle_what_was_told_again(store: Store, rows: Rows):
    approval_id = await decided(store)
    flying = await the_claim(store)
    await store.set_callback(approval_id, ELSEWHERE)
    assert not await store.mark_writing(flying)
    assert not await store.settle(flying, Attempt(200))
    assert await rows.column("SELECT status FROM deliveries") == ["pending"]
    assert "delivery.delivered" not in await rows.history()


async def test_telling_again_comes_at_most_once_a_second(store: Store, rows: Rows):
    approval_id = await decided(store)
    await store.deliver()
    for number in range(5):
        await store.set_callback(approval_id, f"{ELSEWHERE}/{number}")
    assert await rows.value(PAUSE) == pytest.approx(1.0, abs=0.001)
    assert await store.claim() == []
    await rows.sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
    assert (await the_claim(store)).url == f"{ELSEWHERE}/4"


async def test_asking_again_and_again_puts_the_telling_off_no_further(store: Store, rows: Rows):
    approval_id = await decided(store)
    await store.deliver()
    await rows.sql.execute("UPDATE deliveries SET last_attempt_at = last_attempt_at - interval '1 h'")
    for _ in range(3):
        await store.set_callback(approval_id, ELSEWHERE)
    assert (await the_claim(store)).url == ELSEWHERE


async def test_delivered_is_written_once_with_its_history(store: Store, rows: Rows):
    await decided(store)
    claimed = await the_claim(store)
    assert await store.settle(claimed, Attempt(204))
    assert not await store.settle(claimed, Attempt(500))
    assert await rows.column("SELECT status || ' ' || last_status FROM deliveries") == ["delivered 204"]
    assert (await rows.history()).count("delivery.delivered") == 1
    assert await store.claim() == []


async def test_a_failed_try_comes_again_after_its_pause(store: Store, rows: Rows):
    await decided(store)
    claimed = await the_claim(store)
    assert await store.settle(claimed, Attempt(500))
    assert await store.claim() == []
    assert await rows.value(PAUSE) == pytest.approx(1.0, abs=0.9)
    await rows.sql.execute("UPDATE deliveries SET due_at = clock_timestamp()")
    again = await the_claim(store)
    assert (again.attempts, again.fence) == (2, 2)
    assert await rows.column("SELECT last_status || ' ' || last_error FROM deliveries") == ["500 status 500"]


async def redrive(store: Store, delivery_id: str) -> kept.Listed:
    async with store.tx() as conn:
        return await deliveries.redrive(conn, delivery_id, OPERATOR)


async def test_a_dead_delivery_is_driven_again_with_all_its_tries(store: Store, rows: Rows):
    await decided(store)
    claimed = await the_claim(store)
    await store.settle(claimed, Attempt(410))
    assert await rows.column("SELECT status FROM deliveries") == ["dead"]
    listed = await redrive(store, claimed.delivery_id)
    assert (listed.status, listed.attempts, listed.settled_at) == (DeliveryStatus.PENDING, 0, None)
    again = await the_claim(store)
    assert (again.attempts, again.fence) == (1, 3)
    assert [fact for fact in await rows.history() if fact.startswith("delivery")] == [
        "delivery.dead",
        "delivery.redriven",
    ]


async def test_a_delivery_that_ended_well_is_not_driven_again(store: Store):
    await decided(store)
    (claimed,) = await store.deliver()
    with pytest.raises(DeliverySettled) as refused:
        await redrive(store, claimed.delivery_id)
    assert refused.value.extra == {"delivery_status": "delivered"}
    with pytest.raises(DeliveryNotFound):
        await redrive(store, "dlv_unknown")
