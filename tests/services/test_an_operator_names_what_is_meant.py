"""Which approval a person or an agent means when looking or deciding: the newest, the named one, never a guess."""

import pytest

from controlplane.domain.approvals import ApprovalStatus, OnExpiry
from controlplane.domain.errors import (
    AmbiguousRequestId,
    ApprovalNotFound,
    ExecutionNotFound,
    NoApprovalRequest,
    OwnershipMismatch,
)
from controlplane.services import approvals
from tests.services.store import Rows, Store


async def meant(store: Store, request_id: str | None = None, execution_id: str = "run-1") -> str:
    async with store.tx() as conn:
        return await approvals.meant(conn, execution_id, request_id, store.new_id)


async def newest(store: Store, request_id: str | None = None, node_id: str | None = None) -> str:
    async with store.tx() as conn:
        return (await approvals.look_newest(conn, "run-1", request_id, node_id=node_id)).approval_id


async def test_the_only_pending_one_is_meant(store: Store):
    await store.start()
    first = await store.ask("a")
    second = await store.ask("b")
    await store.decide(second.approval_id)
    assert await meant(store) == first.approval_id


async def test_several_pending_need_a_name(store: Store):
    await store.start()
    first = await store.ask("a")
    await store.ask("b")
    with pytest.raises(AmbiguousRequestId):
        await meant(store)
    assert await meant(store, "a") == first.approval_id
    assert await meant(store, first.approval_id) == first.approval_id


async def test_what_is_past_its_deadline_needs_no_name_beside_the_one_that_waits(store: Store, rows: Rows):
    await store.start()
    late = await store.ask("a", on_expiry=OnExpiry.RESUME)
    waits = await store.ask("b")
    await rows.pass_deadline(late.approval_id)
    assert await meant(store) == waits.approval_id
    assert (await store.look(late.approval_id)).status is ApprovalStatus.EXPIRED


async def test_a_deadline_met_while_asking_what_is_meant_is_kept(store: Store, rows: Rows):
    await store.start()
    late = await store.ask("a", on_expiry=OnExpiry.RESUME)
    for name in "bc":
        await store.ask(name)
    await rows.pass_deadline(late.approval_id)
    with pytest.raises(AmbiguousRequestId):
        await meant(store)
    assert (await store.look(late.approval_id)).status is ApprovalStatus.EXPIRED


async def test_with_nothing_pending_the_newest_is_meant(store: Store):
    await store.start()
    for name in "ab":
        last = await store.ask(name)
        await store.decide(last.approval_id)
    assert await meant(store) == last.approval_id


async def test_what_is_not_there_is_said_to_be_missing(store: Store):
    with pytest.raises(ExecutionNotFound):
        await meant(store)
    await store.start()
    for request_id in (None, "a", "apr_unknown"):
        with pytest.raises(NoApprovalRequest):
            await meant(store, request_id)
    with pytest.raises(ApprovalNotFound):
        await store.look("apr_unknown")


async def test_an_approval_of_another_run_is_not_this_runs(store: Store):
    await store.start()
    await store.start("run-2")
    other = await store.ask("a", "run-2")
    with pytest.raises(NoApprovalRequest):
        await meant(store, other.approval_id)


async def test_the_newest_round_is_looked_at(store: Store):
    await store.start()
    first = await store.ask("a")
    await store.decide(first.approval_id, ApprovalStatus.REQUEST_CHANGES)
    second = await store.ask("a")
    third = await store.ask("b")
    assert await newest(store) == third.approval_id
    assert await newest(store, "a") == second.approval_id
    assert await newest(store, first.approval_id) == first.approval_id


async def test_another_nodes_approval_is_not_shown(store: Store):
    await store.start()
    asked = await store.ask()
    assert await newest(store, node_id="node-1") == asked.approval_id
    with pytest.raises(OwnershipMismatch):
        await newest(store, node_id="node-2")


async def test_only_an_end_that_may_be_followed_is_marked_as_read(store: Store, rows: Rows):
    await store.start()
    await store.ask("a")
    assert (await store.read()).read_at is None
    await store.decide(await newest(store))
    await store.read()
    again = await store.ask("b")
    await store.decide(again.approval_id, ApprovalStatus.REQUEST_CHANGES)
    await store.read()
    first = (await store.read()).read_at
    assert first is not None
    assert (await store.read()).read_at == first
    query = "SELECT approval_request_id FROM approvals WHERE read_at IS NOT NULL"
    assert await rows.column(query) == ["b"]
