"""Asking again finds what stands: one approval a round, its first wording, and its newest address."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.deliveries import Attempt
from controlplane.domain.errors import (
    ApprovalRequestConflict,
    ExecutionNotFound,
    InvalidState,
    OwnershipMismatch,
    RoundNotOpen,
)
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage import outbox
from controlplane.storage.approvals import Wording
from tests.factories import CALLBACK, DIGEST, OTHER_DIGEST, asked
from tests.services.store import Rows, Store

CHANGES = ApprovalStatus.REQUEST_CHANGES
OTHER_CALLBACK = "http://127.0.0.1:10/elsewhere"


async def test_twenty_asks_at_once_are_one_approval(store: Store, rows: Rows):
    await store.start()
    found = await asyncio.gather(*(store.ask(payload_digest=DIGEST) for _ in range(20)))
    assert len({approval.approval_id for approval in found}) == 1
    run = await store.run()
    assert (run.status, run.pending_approvals) == (ExecutionStatus.WAITING, 1)
    assert (await rows.history()).count("approval.requested") == 1


async def test_two_first_asks_at_the_same_instant(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    async with rows.holding_run():
        tasks = await watcher.queue(store.ask(payload_digest=DIGEST), store.ask(payload_digest=OTHER_DIGEST))
    first, second = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(first, Approval)
    assert first.payload_digest == DIGEST
    assert isinstance(second, ApprovalRequestConflict)
    assert (await store.run()).pending_approvals == 1


async def test_a_repeat_renews_the_address_and_nothing_else(store: Store):
    await store.start()
    first = await store.ask_for(asked(callback_url=CALLBACK, callback_secret="old"), Wording(title="first"))
    again = await store.ask_for(
        asked(callback_url=OTHER_CALLBACK, callback_secret="new", expires_in=timedelta(hours=9), decided_by="x"),
        Wording(title="second"),
    )
    shown = await store.look(first.approval_id)
    assert (again.approval_id, again.callback_url) == (first.approval_id, OTHER_CALLBACK)
    assert (shown.callback_url, shown.callback_secret) == (OTHER_CALLBACK, "new")
    assert (shown.title, shown.expires_at, shown.decided_by) == ("first", first.expires_at, None)


async def test_a_repeat_without_an_address_keeps_the_one_that_stands(store: Store):
    await store.start()
    first = await store.ask(callback_url=CALLBACK, callback_secret="old")
    await store.ask()
    assert (await store.look(first.approval_id)).callback_url == CALLBACK


async def test_another_action_is_refused_pending_or_decided(store: Store):
    await store.start()
    first = await store.ask(payload_digest=DIGEST)
    with pytest.raises(ApprovalRequestConflict):
        await store.ask(payload_digest=OTHER_DIGEST)
    await store.decide(first.approval_id)
    changed: dict[str, Any]
    for changed in ({"payload_digest": OTHER_DIGEST}, {"payload_digest": DIGEST, "on_expiry": OnExpiry.RESUME}):
        with pytest.raises(ApprovalRequestConflict):
            await store.ask(**changed)


async def test_look_ups_come_in_their_order(store: Store):
    with pytest.raises(ExecutionNotFound):
        await store.ask_for(asked(), node_id="node-2")
    await store.start()
    first = await store.ask()
    await store.decide(first.approval_id, ApprovalStatus.REJECTED)
    with pytest.raises(OwnershipMismatch):
        await store.ask_for(asked("new"), node_id="node-2")
    assert (await store.ask_for(asked(), node_id="node-1")).approval_id == first.approval_id
    with pytest.raises(InvalidState) as refused:
        await store.ask("new")
    assert refused.value.extra == {"execution_status": "cancelled", "status_reason": "approval_rejected"}


async def test_rounds_open_one_after_the_other(store: Store, rows: Rows):
    await store.start()
    rounds = []
    for number in (1, 2, 3):
        rounds.append(await store.ask(round=number))
        with pytest.raises(RoundNotOpen):
            await store.ask(round=number + 1)
        await store.decide(rounds[-1].approval_id, CHANGES, feedback=f"change {number}")
    assert [a.round for a in rounds] == [1, 2, 3]
    found = await store.ask(round=1)
    assert (found.approval_id, found.status, found.feedback) == (rounds[0].approval_id, CHANGES, "change 1")
    assert await rows.value("SELECT count(DISTINCT approval_id) FROM approvals") == 3


async def test_two_approvals_may_be_pending_at_once(store: Store):
    await store.start()
    await asyncio.gather(store.ask("a"), store.ask("b"))
    assert (await store.run()).pending_approvals == 2


async def test_a_restarted_agent_picks_up_its_answer(store: Store, rows: Rows):
    await store.start()
    first = await store.ask(callback_url=CALLBACK, payload_digest=DIGEST)
    await store.decide(first.approval_id, feedback="go", response=b"[1]")
    await store.deliver()
    again = await store.ask(callback_url=OTHER_CALLBACK, payload_digest=DIGEST)
    assert (again.approval_id, again.status, again.feedback, again.response) == (
        first.approval_id,
        ApprovalStatus.APPROVED,
        "go",
        b"[1]",
    )
    assert await rows.column("SELECT url FROM deliveries WHERE status = 'pending'") == [OTHER_CALLBACK]


async def request_changes(store: Store, **asked: Any) -> str:
    await store.start()
    first = await store.ask(**asked)
    await store.decide(first.approval_id, CHANGES, feedback="shorter")
    return first.approval_id


async def test_an_agent_that_died_meanwhile_first_sees_the_end_of_its_round(store: Store):
    first = await request_changes(store, callback_url=CALLBACK, payload_digest=DIGEST)
    again = await store.ask(callback_url=CALLBACK, payload_digest=OTHER_DIGEST)
    assert (again.approval_id, again.round, again.feedback) == (first, 1, "shorter")


async def test_an_end_that_could_not_be_told_is_told_again_when_asked_without_an_address(store: Store, rows: Rows):
    first = await request_changes(store, callback_url=CALLBACK)
    (claimed,) = await store.claim()
    await store.settle(claimed, Attempt(410))
    assert (await store.ask()).approval_id == first
    assert await rows.column("SELECT status || ' ' || url FROM deliveries") == [f"pending {CALLBACK}"]


async def test_once_delivered_the_next_ask_opens_the_next_round(store: Store):
    await request_changes(store, callback_url=CALLBACK)
    await store.deliver()
    assert (await store.ask(callback_url=CALLBACK)).round == 2


async def test_once_read_the_next_ask_opens_the_next_round(store: Store):
    await request_changes(store, callback_url=CALLBACK)
    assert (await store.read()).feedback == "shorter"
    assert (await store.ask(callback_url=CALLBACK)).round == 2


async def test_without_a_callback_there_is_nothing_to_wait_for(store: Store):
    await request_changes(store)
    assert (await store.ask()).round == 2


async def test_a_try_that_is_being_written_counts_until_it_fails(store: Store, rows: Rows):
    await request_changes(store, callback_url=CALLBACK)
    (claimed,) = await store.claim()
    assert not await told(store, claimed.approval.approval_id)
    assert await store.mark_writing(claimed)
    assert await told(store, claimed.approval.approval_id)
    await store.settle(claimed, Attempt(500))
    assert not await told(store, claimed.approval.approval_id)
    assert (await store.ask()).round == 1


async def test_while_a_try_is_being_written_the_next_ask_opens_the_next_round(store: Store):
    await request_changes(store, callback_url=CALLBACK)
    (claimed,) = await store.claim()
    await store.mark_writing(claimed)
    assert (await store.ask()).round == 2


async def test_a_try_whose_writer_died_counts_no_longer_than_its_lease(store: Store, rows: Rows):
    await request_changes(store, callback_url=CALLBACK)
    (claimed,) = await store.claim()
    await store.mark_writing(claimed)
    await rows.sql.execute("UPDATE deliveries SET lease_until = clock_timestamp()")
    assert (await store.ask()).round == 1


async def told(store: Store, approval_id: str) -> bool:
    async with store.tx() as conn:
        return await outbox.told(conn, approval_id)


async def test_a_deadline_met_while_asking_is_kept_whatever_the_ask_comes_to(store: Store, rows: Rows):
    await store.start()
    first = await store.ask(payload_digest=DIGEST)
    await rows.pass_deadline(first.approval_id)
    with pytest.raises(InvalidState):
        await store.ask("new")
    assert (await store.look(first.approval_id)).status is ApprovalStatus.EXPIRED
    assert (await store.run()).status is ExecutionStatus.CANCELLED
