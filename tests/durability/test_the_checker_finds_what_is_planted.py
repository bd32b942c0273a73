"""Every invariant's query is silent on what the server writes, and speaks when the rows are made to break it."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from tests.durability.invariants import INVARIANTS, broken, lost, settled
from tests.durability.plane import API, Plane, Webhook, ask, ask_more, planes, until
from tests.durability.receiver import receiver
from tests.durability.wire import Wire
from tests.owner import UNGUARD
from tests.postgres import Database


class Planted(NamedTuple):
    """What is done to the rows, by statements that the schema itself would refuse, and which invariant finds it."""

    found: str
    statements: tuple[str, ...]


APPROVED = "(SELECT approval_id FROM approvals WHERE execution_id = 'approved')"
PLANTED = {
    "decided otherwise than history says": Planted(
        "I2 (one end", (f"UPDATE approvals SET status = 'rejected' WHERE approval_id = {APPROVED}",)
    ),
    "history was rewritten": Planted(
        "I2 (one end",
        (
            (
                """UPDATE history SET data = jsonb_set(data, '{to}', '"rejected"') WHERE settles"""
                f" AND approval_id = {APPROVED}"
            ),
        ),
    ),
    "a sender was told otherwise": Planted(
        "I2 (what a webhook",
        ("""UPDATE seen_webhooks SET outcome = jsonb_set(outcome, '{approval_status}', '"rejected"')""",),
    ),
    "decided on the deadline": Planted(
        "I3",
        (
            "ALTER TABLE approvals DROP CONSTRAINT approvals_decided_in_time",
            f"UPDATE approvals SET decided_at = expires_at WHERE approval_id = {APPROVED}",
        ),
    ),
    "expired before its time": Planted(
        "I3", ("UPDATE approvals SET expires_at = decided_at + interval '1 ms' WHERE status = 'expired'",)
    ),
    "pending long past its deadline": Planted(
        "I4",
        (
            (
                "UPDATE approvals SET requested_at = now() - interval '1 h', expires_at = now() - interval '1 min'"
                " WHERE execution_id = 'pending'"
            ),
        ),
    ),
    "an end without history": Planted(
        "I5 (final", (f"DELETE FROM history WHERE settles AND approval_id = {APPROVED}",)
    ),
    "history of an end that was not": Planted(
        "I5 (final",
        ("UPDATE history SET settles = true WHERE type = 'approval.requested' AND execution_id = 'pending'",),
    ),
    "two ends of one approval": Planted(
        "I5 (final",
        (
            "DROP INDEX history_one_end",
            f"UPDATE history SET settles = true WHERE type = 'approval.requested' AND approval_id = {APPROVED}",
        ),
    ),
    "an end nobody will be told": Planted(
        "I5 (one delivery", (f"DELETE FROM deliveries WHERE approval_id = {APPROVED}",)
    ),
    "a sibling's end nobody will be told": Planted(
        "I5 (one delivery",
        (
            (
                "DELETE FROM deliveries WHERE approval_id ="
                " (SELECT approval_id FROM approvals WHERE execution_id = 'rejected' AND status = 'withdrawn')"
            ),
        ),
    ),
    "told before it ended": Planted(
        "I5 (one delivery",
        (
            (
                "UPDATE deliveries SET approval_id = (SELECT approval_id FROM approvals WHERE execution_id = 'pending')"
                f" WHERE approval_id = {APPROVED}"
            ),
        ),
    ),
    "a delivery that never ends": Planted(
        "I6 (every",
        (f"UPDATE deliveries SET status = 'pending', settled_at = NULL WHERE approval_id = {APPROVED}",),
    ),
    "delivered before it was sent": Planted(
        "I6 (delivered", (f"UPDATE deliveries SET last_status = NULL WHERE approval_id = {APPROVED}",)
    ),
    "delivered though the receiver refused": Planted(
        "I6 (delivered", (f"UPDATE deliveries SET last_status = 500 WHERE approval_id = {APPROVED}",)
    ),
    "delivered twice by one try": Planted(
        "I7",
        (
            (
                "INSERT INTO history (type, approval_id, actor_kind, actor_name, actor_via, data)"
                " SELECT type, approval_id, actor_kind, actor_name, actor_via, data FROM history"
                f" WHERE type = 'delivery.delivered' AND approval_id = {APPROVED}"
            ),
        ),
    ),
    "a try without a fence": Planted("I8", (f"UPDATE deliveries SET fence = 0 WHERE approval_id = {APPROVED}",)),
    "an end that is still leased": Planted(
        "I8", (f"UPDATE deliveries SET lease_until = now() WHERE approval_id = {APPROVED}",)
    ),
    "a final run that went on": Planted(
        "I9 (an execution goes",
        (
            (
                "INSERT INTO history (type, execution_id, actor_kind, actor_name, actor_via, data) VALUES"
                """ ('execution.running', 'rejected', 'agent', 'x', 'api', '{"from": "cancelled", "to": "running"}')"""
            ),
        ),
    ),
    "a move left out": Planted(
        "I9 (an execution goes",
        (
            "DELETE FROM history WHERE type = 'execution.waiting' AND execution_id = 'approved'",
            (
                "INSERT INTO history (type, execution_id, actor_kind, actor_name, actor_via, data) VALUES"
                """ ('execution.running', 'approved', 'agent', 'x', 'api', '{"from": "waiting", "to": "running"}')"""
            ),
        ),
    ),
    "a run put somewhere by nobody": Planted(
        "I9 (an execution stands",
        (
            (
                "UPDATE executions SET status = 'succeeded', ended_at = now(), running_since = NULL"
                " WHERE execution_id = 'approved'"
            ),
        ),
    ),
    "an actor without a name": Planted("I10", ("UPDATE history SET actor_name = '' WHERE settles",)),
    "an approval nobody asked for": Planted("I10", ("DELETE FROM history WHERE type = 'approval.requested'",)),
    "a webhook forgotten": Planted("I11", ("DELETE FROM seen_webhooks",)),
    "a webhook that had its effect under another name": Planted("I11", ("UPDATE seen_webhooks SET sender = 'other'",)),
    "waiting for nothing": Planted(
        "I18",
        (
            "DELETE FROM history WHERE execution_id = 'pending'",
            "DELETE FROM approvals WHERE execution_id = 'pending'",
        ),
    ),
    "running with a question open": Planted(
        "I18",
        (
            "ALTER TABLE executions DROP CONSTRAINT executions_waits_for_something",
            "UPDATE executions SET status = 'running' WHERE execution_id = 'pending'",
        ),
    ),
    "miscounted": Planted("I18", ("UPDATE executions SET pending_approvals = 2 WHERE execution_id = 'pending'",)),
    "commits that a crash undoes": Planted("I1", ("SET LOCAL synchronous_commit = off",)),
}


async def rows_of_every_kind(plane: Plane, callback: str) -> None:
    """One run that was approved, rejected with a sibling, expired, reported over its question; and one that waits."""
    wire = Wire(plane.url)
    for run in ("approved", "rejected", "reported", "pending"):
        await ask(wire, run, "deploy", callback_url=callback)
    await ask_more(wire, "rejected", "sibling", callback_url=callback)
    await ask(wire, "expired", "deploy", callback_url=callback, expires_in_hours=1.0 / 3600)
    for run in ("approved", "rejected"):
        reply = await Webhook(run, "deploy", run).post(wire)
        assert reply.body["status"] == "processed"
    await wire.call("POST", f"{API}/executions/reported/status", {"status": "succeeded"})
    status = f"{API}/executions/expired/approval-status?wait=20"
    assert (await wire.call("GET", status)).body["status"] == "expired"
    await wire.close()


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Any]:
    """To a database in which a real server has left rows of every kind."""
    opened = await database.connect()
    async with receiver() as told:
        with planes(database.url) as (plane,):
            await rows_of_every_kind(plane, told.url)
            await until(lambda: settled(opened))
    yield opened
    await opened.close()


async def test_each_planted_violation_is_found(connection: Any):
    assert await broken(connection) == []
    await check_lost(connection)
    for what, planted in PLANTED.items():
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(UNGUARD)
        for statement in planted.statements:
            await connection.execute(statement)
        found = await broken(connection)
        await transaction.rollback()
        assert any(each.startswith(planted.found) for each in found), (what, found)
    assert await broken(connection) == []


def test_each_invariant_has_a_plant():
    labels = [f"{invariant.number} ({invariant.promise}" for invariant in INVARIANTS]
    assert [each for each in labels if not any(each.startswith(planted.found) for planted in PLANTED.values())] == []


async def check_lost(connection: Any) -> None:
    """A decision that stands is not lost; one that stands otherwise, or nowhere, is."""
    approved = await connection.fetchval("SELECT approval_id FROM approvals WHERE execution_id = 'approved'")
    assert await lost(connection, [(approved, "approved")]) == []
    assert await lost(connection, [(approved, "rejected")]) == [(approved, "rejected", "approved")]
    assert await lost(connection, [("apr_gone", "approved")]) == [("apr_gone", "approved", None)]
