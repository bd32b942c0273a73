"""An answer that comes before its question waits for it, is used once, and never vanishes without a trace."""

import asyncio
from typing import Any

import pytest

from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.decisions import Decision
from controlplane.domain.errors import SenderNotAllowed, TooManyParked
from controlplane.domain.executions import ExecutionStatus
from controlplane.services import asking, webhooks
from controlplane.services.expiry import drop_parked
from controlplane.services.webhooks import Applied, KeptForLater, Replayed
from controlplane.storage import parked
from controlplane.storage.approvals import Wording
from tests.factories import AGENT, CALLBACK, asked, webhook
from tests.services.store import DEFAULT_POLICY, Rows, Store

PENDING, APPROVED = ApprovalStatus.PENDING, ApprovalStatus.APPROVED
PARKED = "SELECT count(*) FROM parked"
WEBHOOK_FACTS = "SELECT type FROM history WHERE type LIKE 'webhook%' ORDER BY seq"


async def keep(store: Store, *args: Any, **kwargs: Any) -> KeptForLater:
    result = await store.receive(webhook(*args, **kwargs))
    assert isinstance(result, KeptForLater)
    return result


async def test_it_is_applied_the_moment_it_is_asked(store: Store, rows: Rows):
    early = await keep(store, feedback="go", response=b"[1]")
    assert early.fresh
    await store.start()
    approval = await store.ask(callback_url=CALLBACK)
    assert (approval.status, approval.feedback, approval.response) == (APPROVED, "go", b"[1]")
    assert store.changes.settled == [approval.approval_id]
    assert (await store.run()).status is ExecutionStatus.RUNNING
    assert await rows.value(PARKED) == 0
    assert await rows.value("SELECT count(*) FROM deliveries") == 1
    assert await rows.column("SELECT type FROM history ORDER BY seq") == [
        "webhook.parked",
        "execution.created",
        "approval.requested",
        "execution.waiting",
        "approval.approved",
        "execution.running",
        "webhook.parked_used",
    ]


@pytest.mark.parametrize(
    ("decision", "on_expiry", "status"),
    [
        (Decision.REJECTED, OnExpiry.CANCEL, ExecutionStatus.CANCELLED),
        (Decision.REQUEST_CHANGES, OnExpiry.CANCEL, ExecutionStatus.RUNNING),
        (Decision.EXPIRED, OnExpiry.CANCEL, ExecutionStatus.CANCELLED),
        (Decision.EXPIRED, OnExpiry.RESUME, ExecutionStatus.RUNNING),
    ],
)
async def test_every_decision_may_come_early(
    store: Store, decision: Decision, on_expiry: OnExpiry, status: ExecutionStatus
):
    await keep(store, decision=decision)
    await store.start()
    approval = await store.ask(on_expiry=on_expiry)
    assert (approval.status, approval.new_status) == (ApprovalStatus(decision.value), status)


async def test_an_early_rejection_withdraws_what_was_pending_beside_it(store: Store, rows: Rows):
    await keep(store, decision=Decision.REJECTED)
    await store.start()
    other = await store.ask("other")
    await store.ask()
    assert (await store.look(other.approval_id)).status is ApprovalStatus.WITHDRAWN
    assert (await store.run()).pending_approvals == 0


async def test_it_is_for_the_first_round_only(store: Store):
    await store.start()
    first = await store.ask(round=1)
    await store.decide(first.approval_id, ApprovalStatus.REQUEST_CHANGES)
    await keep(store, execution_id="run-2")
    assert (await store.ask(round=2)).status is PENDING


async def test_the_same_again_is_parked_and_another_decision_is_not(store: Store, rows: Rows):
    first = await keep(store, webhook_id="m1")
    again = await keep(store, webhook_id="m1")
    other = await keep(store, decision=Decision.REJECTED, webhook_id="m2")
    assert (again.fresh, other.fresh) == (True, False)
    assert {each.parked.parked_id for each in (first, again, other)} == {first.parked.parked_id}
    assert other.parked.decision is APPROVED
    assert await rows.column(WEBHOOK_FACTS) == ["webhook.parked"]


async def test_its_repeats_are_recognised_after_it_was_used(store: Store, rows: Rows):
    for webhook_id in ("m1", "m2"):
        await keep(store, webhook_id=webhook_id)
    await keep(store, decision=Decision.REJECTED, webhook_id="m3")
    await store.start()
    approval = await store.ask()
    replays = [
        await store.receive(webhook(webhook_id="m1", body=b"other bytes")),
        await store.receive(webhook(webhook_id="m2", body=b"other bytes")),
        await store.receive(webhook()),
        await store.receive(webhook(decision=Decision.REJECTED, webhook_id="m3")),
    ]
    assert [isinstance(replay, Replayed) for replay in replays] == [True] * 4
    outcomes = [replay.outcome for replay in replays if isinstance(replay, Replayed)]
    assert [outcome.applied for outcome in outcomes] == [True, True, True, False]
    assert {outcome.approval_id for outcome in outcomes} == {approval.approval_id}
    assert await rows.value("SELECT count(*) FROM history WHERE settles") == 1


async def test_a_named_run_goes_before_an_unnamed_answer(store: Store, rows: Rows):
    await keep(store, decision=Decision.REJECTED)
    await keep(store, execution_id="run-1")
    await keep(store, decision=Decision.REJECTED, execution_id="run-2")
    await store.start()
    assert (await store.ask()).status is APPROVED
    assert await rows.column("SELECT execution_id FROM parked") == ["run-2"]
    assert (await rows.column(WEBHOOK_FACTS))[3:] == ["webhook.parked_dropped", "webhook.parked_used"]
    late = await store.receive(webhook(decision=Decision.REJECTED))
    assert isinstance(late, Replayed)
    assert not late.outcome.applied


async def test_of_two_runs_that_ask_at_once_one_uses_it(store: Store, rows: Rows):
    await keep(store)
    for run in ("run-1", "run-2"):
        await store.start(run)
    async with store.tx() as conn:
        first = await asking.ask(conn, asked("a", "run-1"), Wording(), actor=AGENT, new_id=store.new_id)
        (other,) = await rows.queue(store.ask("a", "run-2"))
    assert (first.status, (await other).status) == (APPROVED, PENDING)
    assert await rows.column(WEBHOOK_FACTS) == ["webhook.parked", "webhook.parked_used"]


async def test_another_sender_than_the_one_that_may_decide_is_dropped(store: Store, rows: Rows):
    await keep(store, sender="other")
    await store.start()
    assert (await store.ask(decided_by="desk")).status is PENDING
    assert await rows.value(PARKED) == 0
    assert await rows.column(WEBHOOK_FACTS) == ["webhook.parked", "webhook.parked_dropped"]
    with pytest.raises(SenderNotAllowed):
        await store.receive(webhook(sender="other"))


async def test_of_two_senders_the_allowed_one_is_used(store: Store):
    await keep(store, decision=Decision.REJECTED, sender="other")
    await keep(store, sender="desk")
    await store.start()
    assert (await store.ask(decided_by="desk")).status is APPROVED


async def test_once_its_time_is_up_it_is_dropped_and_seen_to_be(store: Store, rows: Rows):
    await keep(store)
    await keep(store, "b")
    await rows.sql.execute("UPDATE parked SET expires_at = clock_timestamp() WHERE approval_request_id = 'a'")
    async with store.tx() as conn:
        assert await drop_parked(conn, limit=10) == 1
    assert await rows.column("SELECT approval_request_id FROM parked") == ["b"]
    facts = await rows.sql.fetch("SELECT type, actor_kind FROM history ORDER BY seq")
    assert tuple(facts[-1]) == ("webhook.parked_dropped", "system")
    await store.start()
    assert (await store.ask()).status is PENDING


async def test_after_its_time_it_is_not_used_swept_or_not_and_may_be_sent_again(store: Store, rows: Rows):
    await keep(store)
    await rows.sql.execute("UPDATE parked SET expires_at = clock_timestamp()")
    async with store.tx() as conn:
        assert await parked.page(conn, None, 10) == []
    again = await keep(store, decision=Decision.REJECTED)
    assert again.fresh
    assert await rows.column(WEBHOOK_FACTS) == ["webhook.parked", "webhook.parked_dropped", "webhook.parked"]
    await rows.sql.execute("UPDATE parked SET expires_at = clock_timestamp()")
    await store.start()
    assert (await store.ask()).status is PENDING


async def test_a_sender_has_ten_thousand_places(store: Store, rows: Rows):
    await rows.sql.execute(
        "INSERT INTO parked (parked_id, sender, approval_request_id, decision, feedback, keys, received_at, expires_at)"
        " SELECT 'prk_' || n, 'desk', 'p' || n, 'approved', '', '{}', now(), now() + interval '1 h'"
        " FROM generate_series(1, 9999) n"
    )
    await keep(store, "last")
    with pytest.raises(TooManyParked):
        await store.receive(webhook("one too many"))
    await keep(store, "last")
    await keep(store, "another sender's", sender="other")


async def test_a_large_answer_cannot_wait(store: Store, rows: Rows):
    await keep(store, "fits", body=b"x" * 65536)
    with pytest.raises(TooManyParked):
        await store.receive(webhook("large", body=b"x" * 65537))
    await store.start()
    await store.ask("large")
    assert isinstance(await store.receive(webhook("large", body=b"x" * 65537)), Applied)


async def test_repeats_of_one_answer_are_bounded(store: Store, rows: Rows):
    for number in range(50):
        await keep(store, webhook_id=f"m{number}", body=b"%d" % number)
    with pytest.raises(TooManyParked):
        await store.receive(webhook(webhook_id="m50", body=b"50"))
    assert await rows.value("SELECT cardinality(keys) FROM parked") == 100


async def ask_in(conn: Any, store: Store) -> Approval:
    return await asking.ask(conn, asked(), Wording(), actor=AGENT, new_id=store.new_id)


async def test_an_answer_that_meets_an_uncommitted_question_waits_and_decides(store: Store, rows: Rows, watcher: Rows):
    await store.start()
    async with store.tx() as conn:
        approval = await ask_in(conn, store)
        (answer,) = await watcher.queue(store.receive(webhook()))
    result = await answer
    assert isinstance(result, Applied)
    assert (result.outcome.applied, result.outcome.approval_id) == (True, approval.approval_id)
    assert await rows.value(PARKED) == 0


async def test_a_question_that_meets_an_uncommitted_answer_waits_and_is_decided(
    store: Store, rows: Rows, watcher: Rows
):
    await store.start()
    async with store.tx() as conn:
        await webhooks.receive(conn, webhook(), DEFAULT_POLICY, store.new_id)
        (question,) = await watcher.queue(store.ask())
    approval = await question
    assert approval.status is APPROVED
    assert await rows.value(PARKED) == 0


async def test_copies_at_the_same_instant_are_parked_once(store: Store, rows: Rows, watcher: Rows):
    async with rows.holding("SELECT pg_advisory_xact_lock(hashtextextended('a', 1))"):
        tasks = await watcher.queue(*(store.receive(webhook(webhook_id=f"m{n}")) for n in range(3)))
    results = await asyncio.gather(*tasks)
    assert len({result.parked.parked_id for result in results}) == 1
    assert await rows.value(PARKED) == 1
    await store.start()
    await store.ask()
    assert isinstance(await store.receive(webhook(webhook_id="m2", body=b"other")), Replayed)


async def test_an_answer_that_was_used_while_its_copy_waited_is_replayed(store: Store, rows: Rows, watcher: Rows):
    await keep(store, webhook_id="m1")
    await store.start()
    async with store.tx() as conn:
        approval = await ask_in(conn, store)
        (copy,) = await watcher.queue(store.receive(webhook(webhook_id="m1")))
    again = await copy
    assert isinstance(again, Replayed)
    assert again.outcome.approval_id == approval.approval_id


async def test_questions_under_one_id_do_not_wait_for_each_other(store: Store):
    for run in ("run-1", "run-2"):
        await store.start(run)
    async with store.tx() as conn:
        await ask_in(conn, store)
        assert (await store.ask("a", "run-2")).status is PENDING
