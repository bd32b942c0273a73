"""A webhook that comes again gets its first answer and has no effect, under whatever id or bytes it is known."""

import asyncio
from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.decisions import Decision
from controlplane.domain.errors import AmbiguousRequestId, RoundNotOpen
from controlplane.services import webhooks
from controlplane.services.webhooks import Applied, Incoming, Replayed
from tests.factories import webhook
from tests.services.store import DEFAULT_POLICY, NEWEST_POLICY, Rows, Store

CHANGES = Decision.REQUEST_CHANGES
SETTLED = "SELECT count(*) FROM history WHERE settles"


async def asked(store: Store) -> str:
    await store.start()
    return (await store.ask()).approval_id


async def test_the_same_bytes_are_replayed(store: Store, rows: Rows):
    await asked(store)
    first = await store.receive(webhook())
    again = await store.receive(webhook())
    assert isinstance(first, Applied)
    assert again == Replayed(first.outcome)
    assert await rows.value(SETTLED) == 1


async def test_the_same_id_is_replayed_whatever_the_bytes_say(store: Store, rows: Rows):
    await asked(store)
    first = await store.receive(webhook(webhook_id="m1"))
    again = await store.receive(webhook(decision=Decision.REJECTED, webhook_id="m1"))
    assert isinstance(first, Applied)
    assert again == Replayed(first.outcome)
    assert await rows.value(SETTLED) == 1


async def test_the_same_bytes_under_another_id_are_replayed(store: Store):
    await asked(store)
    await store.receive(webhook(webhook_id="m1"))
    assert isinstance(await store.receive(webhook(webhook_id="m2")), Replayed)
    assert isinstance(await store.receive(webhook()), Replayed)


async def test_another_sender_is_another_webhook(store: Store):
    await asked(store)
    await store.receive(webhook(webhook_id="m1"))
    other = await store.receive(webhook(webhook_id="m1", sender="other"))
    assert isinstance(other, Applied)
    assert not other.outcome.applied


async def test_what_met_a_decision_is_remembered_as_having_met_it(store: Store):
    approval_id = await asked(store)
    await store.decide(approval_id)
    late = await store.receive(webhook(decision=Decision.REJECTED))
    assert isinstance(late, Applied)
    assert (late.outcome.applied, late.outcome.approval_status) == (False, ApprovalStatus.APPROVED)
    assert await store.receive(webhook(decision=Decision.REJECTED)) == Replayed(late.outcome)


async def test_what_was_refused_is_not_remembered(store: Store, rows: Rows):
    approval_id = await asked(store)
    with pytest.raises(RoundNotOpen):
        await store.receive(webhook(round=2))
    await store.decide(approval_id, ApprovalStatus.REQUEST_CHANGES)
    await store.ask(round=2)
    result = await store.receive(webhook(round=2))
    assert isinstance(result, Applied)
    assert result.outcome.applied
    assert await rows.value("SELECT count(*) FROM seen_webhooks") == 1


async def test_a_repeat_while_the_next_round_is_pending_is_ambiguous(store: Store, rows: Rows):
    await asked(store)
    await store.receive(webhook(decision=CHANGES))
    await store.ask(round=2)
    with pytest.raises(AmbiguousRequestId):
        await store.receive(webhook(decision=CHANGES))
    assert await rows.column("SELECT status FROM approvals ORDER BY round") == ["request_changes", "pending"]


NAMED: list[tuple[dict[str, Any], bool]] = [
    ({}, True),
    ({"execution_id": "run-1"}, True),
    ({"execution_id": "run-1", "round": 1}, False),
    ({"round": 1}, False),
]


@pytest.mark.parametrize(("named", "ambiguous"), NAMED)
async def test_a_repeat_that_names_its_round_is_never_ambiguous(store: Store, named: dict[str, Any], ambiguous: bool):
    await asked(store)
    first = await store.receive(webhook(decision=CHANGES, **named))
    await store.ask(round=2)
    try:
        again = await store.receive(webhook(decision=CHANGES, **named))
    except AmbiguousRequestId:
        assert ambiguous
    else:
        assert not ambiguous
        assert isinstance(first, Applied)
        assert again == Replayed(first.outcome)


async def test_a_repeat_that_names_the_approval_is_never_ambiguous(store: Store):
    approval_id = await asked(store)
    await store.receive(webhook(None, CHANGES, approval_id=approval_id))
    await store.ask(round=2)
    assert isinstance(await store.receive(webhook(None, CHANGES, approval_id=approval_id)), Replayed)


async def test_a_body_with_a_fixed_id_decides_one_run_and_never_the_next(store: Store, rows: Rows):
    await asked(store)
    await store.receive(webhook())
    await store.start("run-2")
    await store.ask("a", "run-2")
    for policy in (DEFAULT_POLICY, NEWEST_POLICY):
        with pytest.raises(AmbiguousRequestId):
            await store.receive(webhook(), policy)
    assert await rows.column("SELECT status FROM approvals ORDER BY execution_id") == ["approved", "pending"]


async def test_what_is_past_its_deadline_makes_no_repeat_ambiguous(store: Store, rows: Rows):
    await asked(store)
    first = await store.receive(webhook(decision=CHANGES))
    second = await store.ask(round=2)
    await rows.pass_deadline(second.approval_id)
    assert isinstance(first, Applied)
    assert await store.receive(webhook(decision=CHANGES)) == Replayed(first.outcome)


async def test_a_repeat_is_replayed_again_once_nothing_is_pending(store: Store, rows: Rows):
    await asked(store)
    first = await store.receive(webhook(decision=CHANGES))
    second = await store.ask(round=2)
    await store.decide(second.approval_id)
    assert isinstance(first, Applied)
    assert await store.receive(webhook(decision=CHANGES)) == Replayed(first.outcome)


async def together(store: Store, rows: Rows, watcher: Rows, *incoming: Incoming) -> list[Any]:
    """Receive webhooks at the same instant, in this order."""
    async with rows.holding("SELECT 1 FROM executions FOR NO KEY UPDATE"):
        tasks = await watcher.queue(*(store.receive(each, NEWEST_POLICY) for each in incoming))
    return await asyncio.gather(*tasks)


async def test_copies_at_the_same_instant_have_one_effect(store: Store, rows: Rows, watcher: Rows):
    await asked(store)
    first, *copies = await together(store, rows, watcher, *[webhook(webhook_id="m1")] * 4)
    assert isinstance(first, Applied)
    assert copies == [Replayed(first.outcome)] * 3
    assert await rows.value(SETTLED) == 1


async def test_copies_that_mean_different_runs_have_one_effect(store: Store, rows: Rows, watcher: Rows):
    for run in ("run-1", "run-2"):
        await store.start(run)
        await store.ask("a", run)
    first = webhook(execution_id="run-1", webhook_id="m1")
    second = webhook(execution_id="run-2", webhook_id="m1")
    async with rows.holding_run("run-1"):
        (slow,) = await watcher.queue(store.receive(first))
        quick = await store.receive(second)
    assert isinstance(quick, Applied)
    with pytest.raises(AmbiguousRequestId):
        await slow
    assert await rows.column("SELECT status FROM approvals ORDER BY execution_id") == ["pending", "approved"]
    assert await rows.value("SELECT count(*) FROM seen_webhooks") == 2


async def test_a_key_that_is_being_claimed_is_waited_for(store: Store, rows: Rows, watcher: Rows):
    """Both copies passed every look-up before either decided."""
    for run in ("run-1", "run-2"):
        await store.start(run)
        await store.ask(run, run)
    first = webhook("run-1", webhook_id="m1")
    second = webhook("run-2", webhook_id="m1")
    async with store.tx() as conn:
        applied = await webhooks.receive(conn, first, DEFAULT_POLICY, store.new_id)
        (slow,) = await watcher.queue(store.receive(second))
    again = await slow
    assert isinstance(applied, Applied)
    assert again == Replayed(applied.outcome)
    assert await rows.column("SELECT status FROM approvals ORDER BY execution_id") == ["approved", "pending"]
    assert await rows.value("SELECT count(*) FROM seen_webhooks") == 2
