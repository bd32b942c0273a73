"""Which approval a signed answer means: the one that is named, or the only one that could be meant, or none."""

from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.decisions import Decision
from controlplane.domain.errors import (
    AmbiguousRequestId,
    ApprovalNotFound,
    InvalidState,
    RoundNotOpen,
    SenderNotAllowed,
)
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.outcomes import Outcome
from controlplane.services.webhooks import Applied, Incoming, KeptForLater, Policy
from tests.factories import webhook
from tests.services.store import DEFAULT_POLICY, NEWEST_POLICY, Rows, Store

PENDING, APPROVED = ApprovalStatus.PENDING, ApprovalStatus.APPROVED


async def apply(store: Store, incoming: Incoming, policy: Policy = DEFAULT_POLICY) -> Outcome:
    result = await store.receive(incoming, policy)
    assert isinstance(result, Applied)
    return result.outcome


async def pending(rows: Rows) -> list[str]:
    query = "SELECT execution_id || '/' || round FROM approvals WHERE status = 'pending' ORDER BY 1"
    return await rows.column(query)


async def ask_in_two_runs(store: Store) -> None:
    for run in ("run-1", "run-2"):
        await store.start(run)
        await store.ask("a", run)


async def test_the_only_one_asked_is_meant(store: Store):
    await store.start()
    asked = await store.ask()
    outcome = await apply(store, webhook(feedback="fine", response=b"[1]"))
    assert (outcome.applied, outcome.approval_id, outcome.new_status) == (
        True,
        asked.approval_id,
        ExecutionStatus.RUNNING,
    )
    shown = await store.look(asked.approval_id)
    assert (shown.status, shown.feedback, shown.response) == (APPROVED, "fine", b"[1]")


async def test_an_approval_id_is_enough(store: Store, rows: Rows):
    await ask_in_two_runs(store)
    (second,) = await rows.column("SELECT approval_id FROM approvals WHERE execution_id = 'run-2'")
    outcome = await apply(store, webhook(None, approval_id=second))
    assert outcome.execution_id == "run-2"
    assert await pending(rows) == ["run-1/1"]
    with pytest.raises(ApprovalNotFound):
        await store.receive(webhook(None, approval_id="apr_unknown"))


async def test_a_named_execution_is_the_only_one_meant(store: Store, rows: Rows):
    await ask_in_two_runs(store)
    assert (await apply(store, webhook(execution_id="run-2"))).execution_id == "run-2"
    assert await pending(rows) == ["run-1/1"]


async def test_several_that_asked_are_ambiguous_even_when_one_is_final(store: Store, rows: Rows):
    await ask_in_two_runs(store)
    with pytest.raises(AmbiguousRequestId):
        await store.receive(webhook())
    await apply(store, webhook(execution_id="run-1"))
    with pytest.raises(AmbiguousRequestId):
        await store.receive(webhook())
    assert await pending(rows) == ["run-2/1"]


async def test_the_newest_is_meant_where_the_operator_wants_it(store: Store, rows: Rows):
    await ask_in_two_runs(store)
    assert (await apply(store, webhook(), NEWEST_POLICY)).execution_id == "run-2"
    assert await pending(rows) == ["run-1/1"]


async def two_rounds(store: Store) -> None:
    await store.start()
    first = await store.ask(round=1)
    await store.decide(first.approval_id, ApprovalStatus.REQUEST_CHANGES)
    await store.ask(round=2)


@pytest.mark.parametrize("named", [{}, {"execution_id": "run-1"}])
async def test_the_newest_round_is_meant(store: Store, named: dict[str, Any]):
    await two_rounds(store)
    outcome = await apply(store, webhook(**named))
    assert (outcome.applied, outcome.round) == (True, 2)


@pytest.mark.parametrize("named", [{}, {"execution_id": "run-1"}])
async def test_a_named_round_is_the_only_one_meant(store: Store, rows: Rows, named: dict[str, Any]):
    await two_rounds(store)
    outcome = await apply(store, webhook(round=1, **named))
    assert (outcome.applied, outcome.round, outcome.approval_status) == (False, 1, ApprovalStatus.REQUEST_CHANGES)
    with pytest.raises(RoundNotOpen):
        await store.receive(webhook(round=3, **named))
    assert await pending(rows) == ["run-1/2"]


async def test_a_later_round_is_never_answered_early(store: Store, rows: Rows):
    named: dict[str, Any]
    for named in ({}, {"execution_id": "run-9"}):
        with pytest.raises(RoundNotOpen):
            await store.receive(webhook(round=2, **named))
    assert await rows.value("SELECT count(*) FROM parked") == 0


async def test_a_run_that_ended_without_asking_cannot_be_answered(store: Store):
    await store.start()
    await store.report(ExecutionStatus.SUCCEEDED)
    with pytest.raises(InvalidState) as refused:
        await store.receive(webhook(execution_id="run-1"))
    assert refused.value.extra == {"execution_status": "succeeded", "status_reason": "execution_finished"}


async def test_only_the_sender_that_may_decide_decides(store: Store, rows: Rows):
    await store.start()
    await store.ask(decided_by="desk")
    with pytest.raises(SenderNotAllowed):
        await store.receive(webhook(sender="other"))
    assert await pending(rows) == ["run-1/1"]
    assert await rows.value("SELECT count(*) FROM seen_webhooks") == 0
    assert (await apply(store, webhook(sender="desk"))).applied
    with pytest.raises(SenderNotAllowed):
        await store.receive(webhook(sender="other"))


async def test_a_person_may_always_decide(store: Store):
    await store.start()
    asked = await store.ask(decided_by="desk")
    assert (await store.decide(asked.approval_id)).applied


@pytest.mark.parametrize("decision", list(Decision))
async def test_each_decision_does_what_the_table_says(store: Store, decision: Decision):
    await store.start()
    asked = await store.ask()
    outcome = await apply(store, webhook(decision=decision))
    assert outcome.approval_status.value == decision.value
    ends = decision in {Decision.REJECTED, Decision.EXPIRED}
    assert outcome.new_status is (ExecutionStatus.CANCELLED if ends else ExecutionStatus.RUNNING)
    assert (await store.look(asked.approval_id)).status is outcome.approval_status


async def test_history_names_the_sender(store: Store, rows: Rows):
    await store.start()
    await store.ask()
    await apply(store, webhook())
    (fact,) = await rows.sql.fetch("SELECT actor_kind, actor_name, actor_via FROM history WHERE settles")
    assert tuple(fact) == ("sender", "desk", "webhook")


async def test_an_answer_for_a_run_that_has_not_asked_waits_for_it_alone(store: Store, rows: Rows):
    await store.start("run-1")
    await store.ask("a", "run-1")
    assert isinstance(await store.receive(webhook(execution_id="run-2")), KeptForLater)
    assert await pending(rows) == ["run-1/1"]
    await store.start("run-2")
    assert (await store.ask("a", "run-2")).status is APPROVED
    assert await pending(rows) == ["run-1/1"]
