"""Each deadline is kept once, by whoever meets it first, and no answer slips in after it."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.domain.errors import SenderNotAllowed
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import expiry
from controlplane.storage.approvals import next_deadline_in
from tests.factories import CALLBACK, webhook
from tests.services.store import Rows, Store

APPROVED, EXPIRED = ApprovalStatus.APPROVED, ApprovalStatus.EXPIRED
CANCELLED, RUNNING, WAITING = ExecutionStatus.CANCELLED, ExecutionStatus.RUNNING, ExecutionStatus.WAITING
LATE = "SELECT count(*) FROM approvals WHERE status NOT IN ('pending', 'expired') AND decided_at >= expires_at"


async def overdue(store: Store, rows: Rows, run: str = "run-1", **asked: object) -> str:
    """An approval whose time is up, not swept yet."""
    await store.start(run)
    approval = await store.ask("a", run, **asked)
    await rows.pass_deadline(approval.approval_id)
    return approval.approval_id


async def test_the_sweeper_ends_what_is_due_and_only_that(store: Store, rows: Rows):
    due = await overdue(store, rows)
    await store.start("run-2")
    later = await store.ask("a", "run-2")
    assert await store.sweep() == 1
    assert store.changes.settled == [due]
    assert await store.sweep() == 0
    assert (await store.look(due)).status is EXPIRED
    assert (await store.look(later.approval_id)).status is ApprovalStatus.PENDING
    run = await store.run()
    assert (run.status, run.status_reason) == (CANCELLED, "approval_expired")


async def test_the_system_is_who_expired_it(store: Store, rows: Rows):
    await overdue(store, rows)
    await store.sweep()
    (fact,) = await rows.sql.fetch("SELECT type, actor_kind, actor_via FROM history WHERE settles")
    assert tuple(fact) == ("approval.expired", "system", "expiry")


async def test_resuming_goes_on_and_the_result_is_the_agents(store: Store, rows: Rows):
    await overdue(store, rows, on_expiry=OnExpiry.RESUME)
    await store.sweep()
    assert (await store.run()).status is RUNNING
    assert (await store.report(ExecutionStatus.SUCCEEDED)).status is ExecutionStatus.SUCCEEDED


async def test_a_read_changes_nothing(store: Store, rows: Rows):
    approval_id = await overdue(store, rows)
    assert (await store.look(approval_id)).status is ApprovalStatus.PENDING
    assert (await store.read()).status is ApprovalStatus.PENDING


async def test_a_late_decision_meets_the_expiry_swept_or_not(store: Store, rows: Rows):
    approval_id = await overdue(store, rows)
    outcome = await store.decide(approval_id)
    assert (outcome.applied, outcome.approval_status, outcome.new_status) == (False, EXPIRED, CANCELLED)
    assert await rows.value("SELECT count(*) FROM history WHERE settles") == 1


@pytest.mark.parametrize("status", [ApprovalStatus.WITHDRAWN, ApprovalStatus.EXPIRED])
async def test_a_late_end_meets_the_expiry(store: Store, rows: Rows, status: ApprovalStatus):
    approval_id = await overdue(store, rows)
    assert (await store.end(approval_id, status)).status is EXPIRED
    (fact,) = await rows.column("SELECT actor_kind FROM history WHERE settles")
    assert fact == "system"


async def test_a_refusal_after_the_deadline_leaves_the_expiry_kept(store: Store, rows: Rows):
    approval_id = await overdue(store, rows, decided_by="desk")
    with pytest.raises(SenderNotAllowed):
        await store.receive(webhook(sender="other"))
    assert store.changes.settled == [approval_id]
    assert (await store.look(approval_id)).status is EXPIRED


async def test_a_late_report_and_a_late_cancel_meet_the_expiry(store: Store, rows: Rows):
    await overdue(store, rows, callback_url=CALLBACK)
    run = await store.report(ExecutionStatus.SUCCEEDED, result=b"1")
    assert (run.status, run.status_reason, run.result) == (CANCELLED, "approval_expired", b"1")
    await overdue(store, rows, "run-2")
    run = await store.cancel("why", "run-2")
    assert run.status_reason == "approval_expired"


async def test_a_decision_that_waited_past_the_deadline_is_late(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    approval = await store.ask()
    async with rows.holding_run():
        (decision,) = await watcher.queue(store.decide(approval.approval_id))
        # The deadline lies between the beginning of the decision's transaction and the lock that it waits for.
        await rows.sql.execute("UPDATE approvals SET expires_at = clock_timestamp()")
    outcome = await decision
    assert (outcome.applied, outcome.approval_status) == (False, EXPIRED)
    assert await rows.value(LATE) == 0


async def test_a_question_that_waited_has_its_whole_time(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    async with rows.holding_run():
        (question,) = await watcher.queue(store.ask(expires_in=timedelta(hours=1)))
        released = await rows.value("SELECT clock_timestamp()")
    approval = await question
    assert approval.requested_at >= released
    assert approval.expires_at - approval.requested_at == timedelta(hours=1)


async def test_a_decision_and_the_sweeper_at_the_same_instant(store: Store, rows: Rows, watcher: Rows):
    approval_id = await overdue(store, rows)
    async with rows.holding_run():
        (decision,) = await watcher.queue(store.decide(approval_id))
        assert await store.sweep() == 0
    assert (await decision).approval_status is EXPIRED
    assert await store.sweep() == 0
    assert await rows.value("SELECT count(*) FROM history WHERE settles") == 1


async def test_two_sweepers_share_the_work(store: Store, rows: Rows):
    for number in range(6):
        await overdue(store, rows, f"run-{number}")
    async with store.tx() as one, store.tx() as other:
        first = await expiry.expire_approvals(one, limit=4, new_id=store.new_id)
        second = await expiry.expire_approvals(other, limit=4, new_id=store.new_id)
    assert (first, second) == (4, 2)
    await asyncio.gather(*(store.sweep() for _ in range(4)))
    assert await rows.value("SELECT count(*) FROM history WHERE settles") == 6
    assert await rows.column("SELECT DISTINCT status FROM executions") == ["cancelled"]


async def test_a_batch_takes_as_many_as_it_may(store: Store, rows: Rows):
    for number in range(5):
        await overdue(store, rows, f"run-{number}")
    assert [await store.sweep(limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_batches_and_decisions_crosswise_never_deadlock(store: Store, rows: Rows):
    runs = [f"run-{number}" for number in range(12)]
    ids = [await overdue(store, rows, run, callback_url=CALLBACK) for run in runs]
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = await rows.value(deadlocks)
    work: list[Coroutine[Any, Any, Any]] = [store.decide(each) for each in reversed(ids)]
    work += [store.report(ExecutionStatus.SUCCEEDED, run) for run in runs]
    work += [store.sweep() for _ in range(3)]
    await asyncio.gather(*work)
    assert await rows.value(deadlocks) == before
    assert await rows.column("SELECT DISTINCT status FROM approvals") == ["expired"]
    assert await rows.value("SELECT count(*) FROM history WHERE settles") == len(ids)


async def test_waiting_is_as_long_as_was_asked(store: Store, rows: Rows):
    await store.start()
    approval = await store.ask(expires_in=timedelta(days=30))
    await rows.sql.execute(
        "UPDATE executions SET created_at = now() - interval '29 d', updated_at = now() - interval '29 d'"
    )
    await rows.sql.execute(
        "UPDATE approvals SET requested_at = now() - interval '29 d', expires_at = now() + interval '1 d'"
    )
    assert await store.sweep() == 0
    assert (await store.decide(approval.approval_id)).applied
    assert (await store.run()).status is RUNNING


async def test_the_next_deadline_is_announced(store: Store, rows: Rows):
    async with store.tx() as conn:
        assert await next_deadline_in(conn) is None
    await store.start()
    approval = await store.ask(expires_in=timedelta(hours=1))
    async with store.tx() as conn:
        assert await next_deadline_in(conn) == pytest.approx(3600, abs=30)
    await rows.pass_deadline(approval.approval_id)
    async with store.tx() as conn:
        pause = await next_deadline_in(conn)
    assert pause is not None
    assert pause < 0
