"""Each list is read page by page, every row once, however many rows share a moment."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.deliveries import DeliveryStatus
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage import approvals, deliveries, executions, parked
from controlplane.storage.approvals import Place
from controlplane.storage.engine import Connection
from tests.services.store import Rows, Store

ROWS = """
INSERT INTO executions (execution_id, node_id, status, pending_approvals, created_at)
SELECT 'r' || n, 'node-' || n % 2, 'waiting', 1, date_trunc('hour', now()) - (n / 3) * interval '1 min'
FROM generate_series(1, 7) n;
INSERT INTO approvals (approval_id, execution_id, node_id, approval_request_id, round, status, on_expiry, requested_at,
                       expires_at, title)
SELECT 'apr_' || n, 'r' || n, 'node-' || n % 2, 'a', 1, 'pending', 'cancel',
       date_trunc('hour', now()) - (n / 3) * interval '1 min', date_trunc('hour', now()) + (1 + n / 2) * interval '1 h',
       '100% of ' || n
FROM generate_series(1, 7) n;
INSERT INTO deliveries (delivery_id, approval_id, execution_id, node_id, status, url, target, secret, created_at,
                        told_at, due_at)
SELECT 'dlv_' || n, 'apr_' || n, 'r' || n, 'node-1', 'pending', 'http://a/', 'http://a:80', 'canary-secret',
       date_trunc('hour', now()), now(), now()
FROM generate_series(1, 7) n;
INSERT INTO parked (parked_id, sender, approval_request_id, decision, feedback, keys, received_at, expires_at)
SELECT 'prk_' || n, 'desk', 'p' || n, 'approved', '', '{}', date_trunc('hour', now()), now() + interval '1 h'
FROM generate_series(1, 7) n;
"""
Reader = Callable[[Connection, Place | None], Awaitable[Sequence[Any]]]
NEWEST, SOONEST = approvals.Filter(), approvals.Filter(by_deadline=True)
LISTS: dict[str, tuple[Reader, Callable[[Any], Place]]] = {
    "approvals": (
        lambda conn, after: approvals.page(conn, NEWEST, after, 2),
        lambda row: Place(row.requested_at, row.approval_id),
    ),
    "approvals by deadline": (
        lambda conn, after: approvals.page(conn, SOONEST, after, 2),
        lambda row: Place(row.expires_at, row.approval_id),
    ),
    "executions": (
        lambda conn, after: executions.page(conn, executions.Filter(), after, 2),
        lambda row: Place(row.created_at, row.execution_id),
    ),
    "deliveries": (
        lambda conn, after: deliveries.page(conn, None, after, 2),
        lambda row: Place(row.created_at, row.delivery_id),
    ),
    "parked": (
        lambda conn, after: parked.page(conn, after, 2),
        lambda row: Place(row.received_at, row.parked_id),
    ),
}


@pytest.fixture
async def seven(store: Store, rows: Rows) -> Store:
    """Seven rows in each list, some at the same moment."""
    await rows.sql.execute(ROWS)
    return store


async def test_every_row_comes_once_and_in_order(seven: Store):
    for name, (read, place_of) in LISTS.items():
        places: list[Place] = []
        async with seven.tx() as conn:
            while page := await read(conn, places[-1] if places else None):
                places += [place_of(row) for row in page]
        keys = [(place.at, place.id) for place in places]
        assert len(keys) == 7, name
        assert keys == sorted(keys, reverse=name != "approvals by deadline"), name


async def test_a_search_takes_its_text_literally(seven: Store):
    async with seven.tx() as conn:
        texts = ["100%", "0%_", "R4", "_", "apr_4"]
        found = [len(await approvals.page(conn, approvals.Filter(text=text), None, 50)) for text in texts]
    assert found == [7, 0, 1, 7, 1]


async def test_filters_narrow(seven: Store):
    async with seven.tx() as conn:
        by = [
            approvals.Filter(status=ApprovalStatus.PENDING),
            approvals.Filter(status=ApprovalStatus.APPROVED),
            approvals.Filter(node_id="node-1"),
            approvals.Filter(execution_id="r3"),
            approvals.Filter(approval_request_id="a", node_id="node-0"),
        ]
        assert [len(await approvals.page(conn, which, None, 50)) for which in by] == [7, 0, 4, 1, 3]
        runs = [executions.Filter(status=ExecutionStatus.WAITING), executions.Filter(node_id="node-1")]
        assert [len(await executions.page(conn, which, None, 50)) for which in runs] == [7, 4]
        assert len(await deliveries.page(conn, DeliveryStatus.DEAD, None, 50)) == 0


async def test_a_run_without_a_sign_for_a_day_is_stale(seven: Store, rows: Rows):
    await rows.sql.execute(
        "UPDATE executions SET status = 'running', pending_approvals = 0,"
        " updated_at = now() - interval '25 h' WHERE execution_id = 'r1'"
    )
    async with seven.tx() as conn:
        stale = await executions.page(conn, executions.Filter(stale=True), None, 50)
        assert [run.execution_id for run in stale] == ["r1"]
        await executions.touch(conn, "r1")
        assert await executions.page(conn, executions.Filter(stale=True), None, 50) == []


async def test_a_list_of_deliveries_shows_no_secret(seven: Store):
    async with seven.tx() as conn:
        assert "canary-secret" not in repr(await deliveries.page(conn, None, None, 50))
