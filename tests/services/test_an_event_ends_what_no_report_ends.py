"""What an older agent tells beside its reports ends a run only where nothing else will."""

import pytest

from controlplane.domain.executions import ExecutionStatus
from controlplane.services import peers
from controlplane.services.executions import Report
from tests.factories import AGENT
from tests.services.fleet import Fleet
from tests.services.store import Store

Status = ExecutionStatus
FAILED = Report(status=Status.FAILED, error="Execution cancelled by upstream client")


async def tell(store: Store, execution_id: str, told: Report) -> bool:
    async with store.tx() as conn:
        return await peers.event(conn, execution_id, told, actor=AGENT, new_id=store.new_id, fence=None)


async def test_a_dispatched_run_ends_by_its_report_whatever_its_event_says(fleet: Fleet, store: Store):
    await fleet.join(replay=False)
    await fleet.run("a")
    assert await tell(store, "a", FAILED)
    run = await store.run("a")
    assert (run.status, run.error) == (Status.RUNNING, None)
    ended = await store.report(Status.CANCELLED, "a")
    assert (ended.status, ended.error) == (Status.CANCELLED, None)


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.TIMEOUT])
async def test_a_plain_function_ends_by_its_event(fleet: Fleet, store: Store, status: ExecutionStatus):
    await fleet.join(replay=False, skills=["work"])
    sent = await fleet.run("a")
    assert sent.skill
    assert await tell(store, "a", Report(status=status, result=b"1"))
    run = await store.run("a")
    assert (run.status, run.result) == (status, b"1")


async def test_what_an_agent_started_itself_ends_by_its_event(store: Store):
    await store.start()
    assert await tell(store, "run-1", FAILED)
    run = await store.run("run-1")
    assert (run.status, run.error) == (Status.FAILED, FAILED.error)


async def test_the_first_end_stands(store: Store):
    await store.start()
    assert await tell(store, "run-1", Report(status=Status.SUCCEEDED, result=b"1"))
    assert await tell(store, "run-1", FAILED)
    run = await store.run("run-1")
    assert (run.status, run.result, run.error) == (Status.SUCCEEDED, b"1", None)


async def test_nobody_s_event_is_no_fault(store: Store):
    assert not await tell(store, "nobody", FAILED)
