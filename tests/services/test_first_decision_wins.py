"""Of rival answers exactly one takes effect, the others are told what stands, and each end is one row of history."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.decisions import Decision
from controlplane.domain.errors import ApprovalChanged, ApprovalNotFound
from controlplane.domain.executions import ExecutionStatus
from controlplane.services.approvals import SeenByPerson
from controlplane.services.webhooks import Applied
from tests.factories import CALLBACK, DIGEST, OTHER_DIGEST, webhook
from tests.services.store import Rows, Store

APPROVED, REJECTED = ApprovalStatus.APPROVED, ApprovalStatus.REJECTED
WAITING, RUNNING = ExecutionStatus.WAITING, ExecutionStatus.RUNNING
SETTLING = "SELECT count(*) FROM history WHERE settles AND approval_id = $1"


async def test_a_decision_is_kept_whole(store: Store, rows: Rows):
    await store.start()
    asked = await store.ask(callback_url=CALLBACK)
    outcome = await store.decide(asked.approval_id, REJECTED, feedback="too dear", response=b'{"why":  1}')
    assert outcome.applied
    assert store.changes.settled == [asked.approval_id]
    assert store.changes.due
    shown = await store.look(asked.approval_id)
    assert (shown.status, shown.feedback, shown.response) == (REJECTED, "too dear", b'{"why":  1}')
    assert shown.decided_at is not None
    assert asked.requested_at < shown.decided_at < asked.expires_at
    run = await store.run()
    assert (run.status, run.status_reason) == (ExecutionStatus.CANCELLED, "approval_rejected: too dear")
    assert await rows.value(SETTLING, asked.approval_id) == 1
    assert await rows.value("SELECT count(*) FROM deliveries") == 1


async def test_history_says_who_did_what(store: Store, rows: Rows):
    await store.start()
    await store.decide((await store.ask()).approval_id)
    facts = await rows.sql.fetch(
        "SELECT type, actor_kind, actor_name, actor_via, actor_address FROM history ORDER BY seq"
    )
    assert [tuple(fact) for fact in facts] == [
        ("execution.created", "agent", "node-1", "api", None),
        ("approval.requested", "agent", "node-1", "api", None),
        ("execution.waiting", "agent", "node-1", "api", None),
        ("approval.approved", "person", "reviewer", "api", "127.0.0.1"),
        ("execution.running", "person", "reviewer", "api", "127.0.0.1"),
    ]


async def test_a_later_answer_meets_what_stands(store: Store, rows: Rows):
    await store.start()
    asked = await store.ask()
    await store.decide(asked.approval_id)
    before = await rows.history()
    for status in ApprovalStatus:
        if status is not ApprovalStatus.PENDING:
            outcome = await store.decide(asked.approval_id, status)
            assert (outcome.applied, outcome.approval_status, outcome.new_status) == (False, APPROVED, RUNNING)
    assert await rows.history() == before


async def test_what_stood_at_the_decision_is_told_however_the_run_went_on(store: Store):
    await store.start()
    asked = await store.ask()
    await store.decide(asked.approval_id)
    await store.report(ExecutionStatus.SUCCEEDED)
    outcome = await store.decide(asked.approval_id, REJECTED)
    assert (outcome.new_status, outcome.execution_status) == (RUNNING, ExecutionStatus.SUCCEEDED)


async def test_a_person_decides_on_what_was_seen(store: Store):
    await store.start()
    asked = await store.ask(payload_digest=DIGEST)
    for seen in (SeenByPerson(payload_digest=OTHER_DIGEST), SeenByPerson(round=2)):
        with pytest.raises(ApprovalChanged):
            await store.decide(asked.approval_id, seen=seen)
    assert (await store.look(asked.approval_id)).status is ApprovalStatus.PENDING
    assert (await store.decide(asked.approval_id, seen=SeenByPerson(payload_digest=DIGEST, round=1))).applied


async def test_an_unknown_approval_is_not_found(store: Store):
    with pytest.raises(ApprovalNotFound):
        await store.decide("apr_unknown")
    with pytest.raises(ApprovalNotFound):
        await store.end("apr_unknown", ApprovalStatus.WITHDRAWN)


async def test_two_rivals_at_the_same_instant(store: Store, rows: Rows, watcher: Rows):
    for number, order in enumerate([(APPROVED, REJECTED), (REJECTED, APPROVED)]):
        run = f"run-{number}"
        await store.start(run)
        asked = await store.ask("a", run, callback_url=CALLBACK)
        async with rows.holding_run(run):
            tasks = await watcher.queue(*(store.decide(asked.approval_id, status) for status in order))
        first, second = await asyncio.gather(*tasks)
        assert (first.applied, second.applied) == (True, False)
        assert {first.approval_status, second.approval_status} == {order[0]}
        assert first.new_status is second.new_status
        assert await rows.value(SETTLING, asked.approval_id) == 1
    assert await rows.value("SELECT count(*) FROM deliveries") == 2


async def test_a_person_and_a_webhook_at_the_same_instant(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    asked = await store.ask()
    async with rows.holding_run():
        tasks = await watcher.queue(
            store.receive(webhook("a", Decision.REJECTED)), store.decide(asked.approval_id, APPROVED)
        )
    answered, decided = await asyncio.gather(*tasks)
    assert isinstance(answered, Applied)
    assert answered.outcome.applied
    assert (decided.applied, decided.approval_status) == (False, REJECTED)


async def test_two_approvals_decided_at_the_same_instant_leave_nobody_waiting(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    asked = [await store.ask(name) for name in "ab"]
    async with rows.holding_run():
        tasks = await watcher.queue(*(store.decide(each.approval_id) for each in asked))
        assert (await store.run()).pending_approvals == 2
    first, second = await asyncio.gather(*tasks)
    assert (first.new_status, second.new_status) == (WAITING, RUNNING)
    run = await store.run()
    assert (run.status, run.pending_approvals, run.status_reason) == (RUNNING, 0, "approval_granted")


async def test_an_agents_report_between_two_decisions(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    asked = [await store.ask(name, callback_url=CALLBACK) for name in "ab"]
    async with rows.holding_run():
        tasks = await watcher.queue(
            store.decide(asked[0].approval_id),
            store.report(ExecutionStatus.SUCCEEDED, result=b"1"),
            store.decide(asked[1].approval_id),
        )
    first, reported, second = await asyncio.gather(*tasks)
    assert (first.applied, second.applied) == (True, False)
    assert second.approval_status is ApprovalStatus.WITHDRAWN
    assert (reported.status, reported.pending_approvals) == (ExecutionStatus.SUCCEEDED, 0)
    assert await rows.column("SELECT status FROM deliveries") == ["obsolete"]


async def test_many_pairs_at_once_leave_nobody_waiting(store: Store, rows: Rows):
    runs = [f"run-{number}" for number in range(20)]
    for run in runs:
        await store.start(run)
    asked = [await store.ask(name, run) for run in runs for name in "ab"]
    work: list[Coroutine[Any, Any, Any]] = [store.decide(each.approval_id) for each in asked]
    work += [store.report(RUNNING, run) for run in runs]
    await asyncio.gather(*work)
    assert await rows.column("SELECT DISTINCT status FROM executions") == ["running"]
    assert await rows.value("SELECT sum(pending_approvals) FROM executions") == 0
    assert await rows.value("SELECT count(*) FROM history WHERE settles") == len(asked)
