"""The CHECK constraints hold the domain's own words, and refuse what no rule can bring about."""

import re
from collections.abc import Iterable

import asyncpg
import pytest

from controlplane.domain.approvals import BEFORE_DEADLINE, ApprovalStatus, OnExpiry
from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.dispatching import DispatchKind
from controlplane.domain.events import ActorKind
from controlplane.domain.executions import FINAL_EXECUTION, ExecutionStatus
from controlplane.domain.feedback import FeedbackStatus
from controlplane.domain.keys import Scope
from controlplane.domain.nodes import InstanceStatus
from controlplane.domain.vault import PREFIX
from controlplane.domain.webhook_secrets import NAME
from tests.factories import CALLBACK
from tests.services.store import Rows, Store

WORDS: dict[str, Iterable[str]] = {
    "executions_status": ExecutionStatus,
    "executions_end_has_a_time": FINAL_EXECUTION,
    "executions_waits_for_something": [ExecutionStatus.WAITING],
    "approvals_status": ApprovalStatus,
    "approvals_on_expiry": OnExpiry,
    "approvals_new_status": ExecutionStatus,
    "approvals_end_has_a_time": [ApprovalStatus.PENDING],
    "approvals_decided_in_time": BEFORE_DEADLINE,
    "deliveries_status": DeliveryStatus,
    "deliveries_end_has_a_time": [DeliveryStatus.PENDING],
    "history_actor_kind": ActorKind,
    "executions_queue_is_ours": [ExecutionStatus.QUEUED],
    "executions_work_has_a_start": [ExecutionStatus.RUNNING],
    "executions_outcome_of_an_end": [ExecutionStatus.CANCELLED],
    "instances_status": InstanceStatus,
    "instances_end_has_a_time": [InstanceStatus.GONE],
    "instances_end_has_a_reason": [InstanceStatus.GONE],
    "instances_leave_when_gone": [InstanceStatus.GONE],
    "dispatches_kind": DispatchKind,
    "parked_decision": BEFORE_DEADLINE | {ApprovalStatus.EXPIRED},
    "feedback_status": FeedbackStatus,
    "feedback_end_has_a_time": [FeedbackStatus.PENDING],
    "feedback_words_while_pending": [FeedbackStatus.PENDING],
    "feedback_public_key": [FeedbackStatus.PENDING],
    "feedback_answer_of_an_end": [FeedbackStatus.ANSWERED],
    "feedback_clock_while_pending": [FeedbackStatus.PENDING],
    "feedback_answered_in_time": [FeedbackStatus.ANSWERED],
    "api_keys_scopes": Scope,
    "senders_name": [f"^{NAME}$"],
    "sender_secrets_sealed": [PREFIX],
    "api_keys_asks_or_decides": [Scope.AGENT],
    "api_keys_node_of_agent": [Scope.AGENT],
}


async def test_each_check_has_the_domains_words(rows: Rows):
    found = await rows.sql.fetch(
        "SELECT conname, pg_get_constraintdef(oid) AS says FROM pg_constraint"
        " WHERE contype = 'c' AND connamespace = 'public'::regnamespace"
    )
    says = {row["conname"]: set(re.findall(r"'([^']*)'", row["says"])) for row in found}
    assert {name: words for name, words in says.items() if words} == {name: set(words) for name, words in WORDS.items()}


FORBIDDEN = {
    "waiting for nothing": ("executions_waits_for_something", "UPDATE executions SET pending_approvals = 0"),
    "running with a question open": ("executions_waits_for_something", "UPDATE executions SET status = 'running'"),
    "fewer than none pending": (
        "executions_pending_counted",
        "UPDATE executions SET status = 'running', pending_approvals = -1",
    ),
    "over without a time": (
        "executions_end_has_a_time",
        "UPDATE executions SET status = 'failed', pending_approvals = 0",
    ),
    "an end that is none": ("executions_end_has_a_time", "UPDATE executions SET ended_at = now()"),
    "an unknown state of a run": (
        "executions_status",
        "UPDATE executions SET status = 'paused', pending_approvals = 0",
    ),
    "an unknown state of an approval": (
        "approvals_status",
        "UPDATE approvals SET status = 'maybe', decided_at = now(), new_status = 'running'",
    ),
    "decided at no time": ("approvals_end_has_a_time", "UPDATE approvals SET status = 'approved'"),
    "pending but decided": (
        "approvals_end_has_a_time",
        "UPDATE approvals SET decided_at = now(), new_status = 'running'",
    ),
    "decided without effect": (
        "approvals_end_has_an_effect",
        "UPDATE approvals SET status = 'approved', decided_at = now()",
    ),
    "decided at the deadline": (
        "approvals_decided_in_time",
        "UPDATE approvals SET status = 'approved', new_status = 'running', decided_at = expires_at",
    ),
    "a deadline before its question": (
        "approvals_deadline_after_request",
        "UPDATE approvals SET expires_at = requested_at",
    ),
    "round nought": ("approvals_round", "UPDATE approvals SET round = 0"),
    "delivered at no time": ("deliveries_end_has_a_time", "UPDATE deliveries SET status = 'delivered'"),
}


async def test_rows_against_the_rules_are_refused(store: Store, rows: Rows):
    await store.start()
    told = await store.ask("told", callback_url=CALLBACK)
    await store.decide(told.approval_id)
    await store.ask("open")
    refused = {name: await refusing(rows, statement + only(statement)) for name, (_, statement) in FORBIDDEN.items()}
    assert refused == {name: constraint for name, (constraint, _) in FORBIDDEN.items()}


async def refusing(rows: Rows, statement: str) -> str | None:
    """The constraint that refuses a statement."""
    with pytest.raises(asyncpg.IntegrityConstraintViolationError) as refused:
        await rows.sql.execute(statement)
    constraint: str | None = refused.value.constraint_name
    return constraint


def only(statement: str) -> str:
    """Keep a statement on approvals to the one that is pending."""
    return " WHERE status = 'pending'" if "UPDATE approvals" in statement else ""


async def test_an_expiry_may_come_at_its_deadline(store: Store, rows: Rows):
    await store.start()
    await store.ask()
    await rows.sql.execute(
        "UPDATE approvals SET status = 'expired', new_status = 'cancelled', decided_at = expires_at + interval '1 s'"
    )


UNIQUE = {
    "approvals_one_a_round": """
        INSERT INTO approvals SELECT (jsonb_populate_record(a, '{"approval_id": "apr_2"}')).* FROM approvals a""",
    "deliveries_one_an_approval": """
        INSERT INTO deliveries SELECT (jsonb_populate_record(d, '{"delivery_id": "dlv_2"}')).* FROM deliveries d""",
    "history_one_end": """
        INSERT INTO history (type, approval_id, actor_kind, actor_name, actor_via, settles, data)
        SELECT type, approval_id, actor_kind, actor_name, actor_via, settles, data FROM history WHERE settles""",
}


async def test_there_is_one_of_each(store: Store, rows: Rows):
    await store.start()
    await store.decide((await store.ask(callback_url=CALLBACK)).approval_id)
    assert [await refusing(rows, statement) for statement in UNIQUE.values()] == list(UNIQUE)
