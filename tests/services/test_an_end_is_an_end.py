"""Withdrawing, expiring, cancelling and reporting: what each does to an approval, its others and its run."""

import pytest
from msgspec.structs import replace

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.domain.deliveries import Attempt
from controlplane.domain.errors import ExecutionExists, ExecutionNotFound
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus
from controlplane.services import executions
from controlplane.storage import outbox
from controlplane.storage.executions import Note, notes_of
from tests.factories import AGENT, CALLBACK
from tests.services.store import Rows, Store

PENDING, WITHDRAWN, EXPIRED = ApprovalStatus.PENDING, ApprovalStatus.WITHDRAWN, ApprovalStatus.EXPIRED
RUNNING, WAITING, CANCELLED = ExecutionStatus.RUNNING, ExecutionStatus.WAITING, ExecutionStatus.CANCELLED


async def statuses(rows: Rows) -> list[str]:
    return await rows.column("SELECT status FROM approvals ORDER BY approval_id")


async def told(rows: Rows) -> list[str]:
    query = "SELECT a.approval_request_id FROM deliveries d JOIN approvals a USING (approval_id) ORDER BY 1"
    return await rows.column(query)


async def ask_both(store: Store, on_expiry: OnExpiry = OnExpiry.CANCEL) -> str:
    """Ask `a` and `b` of a new run, each with a callback, and return the id of `a`."""
    await store.start()
    asked = await store.ask("a", callback_url=CALLBACK, on_expiry=on_expiry)
    await store.ask("b", callback_url=CALLBACK)
    return asked.approval_id


async def test_a_withdrawal_leaves_the_others_and_resumes_with_the_last(store: Store, rows: Rows):
    first = await ask_both(store)
    shown = await store.end(first, WITHDRAWN)
    assert (shown.status, shown.execution_status) == (WITHDRAWN, WAITING)
    (second,) = await rows.column("SELECT approval_id FROM approvals WHERE status = 'pending'")
    shown = await store.end(second, WITHDRAWN)
    assert shown.execution_status is RUNNING
    assert (await store.run()).status_reason == "approval_withdrawn"
    assert await told(rows) == ["a", "b"]


async def test_an_own_timeout_expires_as_agreed(store: Store, rows: Rows):
    shown = await store.end(await ask_both(store), EXPIRED)
    assert (shown.status, shown.execution_status) == (EXPIRED, CANCELLED)
    assert await statuses(rows) == ["expired", "withdrawn"]
    assert await told(rows) == ["a", "b"]


async def test_an_own_timeout_that_resumes_leaves_the_others(store: Store, rows: Rows):
    shown = await store.end(await ask_both(store, OnExpiry.RESUME), EXPIRED)
    assert (shown.status, shown.execution_status) == (EXPIRED, WAITING)
    assert await statuses(rows) == ["expired", "pending"]


async def test_what_stands_already_stands(store: Store, rows: Rows):
    first = await ask_both(store)
    await store.decide(first)
    for status in (WITHDRAWN, EXPIRED):
        assert (await store.end(first, status)).status is ApprovalStatus.APPROVED
    assert await statuses(rows) == ["approved", "pending"]


async def test_cancelling_withdraws_and_tells_and_a_late_approval_has_no_effect(store: Store, rows: Rows):
    first = await ask_both(store)
    run = await store.cancel("no longer needed")
    assert (run.status, run.status_reason, run.pending_approvals) == (CANCELLED, "no longer needed", 0)
    outcome = await store.decide(first)
    assert (outcome.applied, outcome.approval_status) == (False, WITHDRAWN)
    assert await told(rows) == ["a", "b"]
    again = await store.cancel("another reason")
    assert again.status_reason == "no longer needed"


async def test_cancelling_without_a_reason_names_the_operator(store: Store):
    await store.start()
    assert (await store.cancel()).status_reason == "cancelled_by_operator"


async def test_an_end_reported_withdraws_and_tells_nobody(store: Store, rows: Rows):
    await ask_both(store)
    run = await store.report(ExecutionStatus.SUCCEEDED, result=b'{"done": true}')
    assert (run.status, run.status_reason, run.result) == (
        ExecutionStatus.SUCCEEDED,
        "execution_finished",
        b'{"done": true}',
    )
    assert await statuses(rows) == ["withdrawn", "withdrawn"]
    assert await told(rows) == []
    assert len(store.changes.settled) == 2


async def test_an_end_reported_makes_undelivered_callbacks_obsolete(store: Store, rows: Rows):
    first = await ask_both(store)
    await store.decide(first)
    (claimed,) = await store.claim()
    await store.report(ExecutionStatus.FAILED, error="out of luck")
    assert await rows.column("SELECT status FROM deliveries") == ["obsolete"]
    assert "delivery.obsolete" in await rows.history()
    async with store.tx() as conn:
        assert not await outbox.told(conn, first)
    assert not await store.settle(claimed, Attempt(500))
    assert await rows.column("SELECT status FROM deliveries") == ["obsolete"]
    assert await store.claim() == []


async def test_a_callback_that_arrived_counts_though_the_run_ended_before_it_was_settled(store: Store, rows: Rows):
    first = await ask_both(store)
    await store.decide(first)
    (claimed,) = await store.claim()
    await store.report(ExecutionStatus.SUCCEEDED)
    assert await store.settle(claimed, Attempt(200))
    assert await rows.column("SELECT status FROM deliveries") == ["delivered"]
    assert (await rows.history())[-2:] == ["delivery.obsolete", "delivery.delivered"]


@pytest.mark.parametrize("status", sorted(set(ExecutionStatus) - FINAL_EXECUTION))
async def test_a_report_that_is_no_end_changes_only_the_sign_of_life(store: Store, rows: Rows, status: ExecutionStatus):
    await ask_both(store)
    before, history = await store.run(), await rows.history()
    after = await store.report(status)
    assert (after.status, after.pending_approvals, after.ended_at) == (WAITING, 2, None)
    assert after.updated_at > before.updated_at
    assert await rows.history() == history


async def test_after_a_rejection_the_result_is_stored_and_the_status_stays(store: Store, rows: Rows):
    first = await ask_both(store)
    await store.decide(first, ApprovalStatus.REJECTED)
    run = await store.report(ExecutionStatus.SUCCEEDED, result=b'"cleaned up"')
    assert (run.status, run.status_reason, run.result) == (CANCELLED, "approval_rejected", b'"cleaned up"')
    again = await store.report(ExecutionStatus.FAILED, result=b'"other"')
    assert again.result == b'"cleaned up"'
    assert (await rows.history()).count("execution.result") == 1


async def test_an_unknown_execution_is_not_found(store: Store):
    with pytest.raises(ExecutionNotFound):
        await store.report(ExecutionStatus.SUCCEEDED)
    with pytest.raises(ExecutionNotFound):
        await store.cancel()
    with pytest.raises(ExecutionNotFound):
        await store.run()


async def test_an_execution_starts_once_and_belongs_to_one_node(store: Store, rows: Rows):
    assert await store.start() == await store.start()
    with pytest.raises(ExecutionExists):
        await store.start(node_id="node-2")
    assert await rows.history() == ["execution.created"]


async def test_a_note_is_written_once(store: Store, rows: Rows):
    await store.start()
    line = Note(note_id="n1", message="half way", tags=("progress",))
    async with store.tx() as conn:
        written, new = await executions.note(conn, "run-1", line, actor=AGENT, new_id=store.new_id)
        again, twice = await executions.note(
            conn, "run-1", replace(line, message="other words"), actor=AGENT, new_id=store.new_id
        )
        (kept,) = await notes_of(conn, "run-1")
    assert (new, twice) == (True, False)
    assert written == again == kept
    assert (kept.note_id, kept.message, kept.tags) == ("n1", "half way", ("progress",))
    assert (await rows.history()).count("execution.note") == 1
