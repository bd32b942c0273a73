"""What came as JSON leaves as the same bytes, so that a digest stays reproducible."""

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage import approvals, steps
from controlplane.storage.approvals import Wording
from tests.factories import asked
from tests.services.store import Store

SPELLINGS = [
    b"null",
    b"false",
    b"0",
    b'""',
    b"{}",
    b'{"b" : 1.0,"a":1e2 , "a\\u00e9": "\\/"}',
    "\u00e9\U0001f680".join('""').encode(),
    b"[1.10, 12345678901234567890123]",
]


async def test_each_place_gives_back_the_same_bytes(store: Store):
    kept = [await keep(store, f"run-{number}", spelling) for number, spelling in enumerate(SPELLINGS)]
    assert kept == [[spelling] * 7 for spelling in SPELLINGS]


async def keep(store: Store, run: str, spelling: bytes) -> list[bytes | None]:
    """What each place gives back of one value."""
    await store.start(run)
    await store.step("a", spelling, run)
    approval = await store.ask_for(asked("a", run), Wording(payload=spelling))
    await store.decide(approval.approval_id, ApprovalStatus.APPROVED, response=spelling)
    await store.report(ExecutionStatus.SUCCEEDED, run, result=spelling)
    shown = await store.look(approval.approval_id)
    async with store.tx() as conn:
        (listed,) = await approvals.final_among(conn, [approval.approval_id])
        (paged,) = await approvals.page(conn, approvals.Filter(execution_id=run), None, 10)
        step = await steps.get(conn, run, "a", 1)
        (replayed,), _ = await steps.page(conn, run, after=0, limit=10)
    results = [(await store.run(run)).result, step.result if step else None, replayed.result]
    return [shown.payload, shown.response, listed.response, paged.payload, *results]


async def test_no_value_is_not_null(store: Store):
    await store.start()
    approval = await store.ask()
    await store.decide(approval.approval_id, ApprovalStatus.APPROVED)
    shown = await store.look(approval.approval_id)
    assert (shown.payload, shown.response) == (None, None)
