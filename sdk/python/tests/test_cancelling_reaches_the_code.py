"""The control plane says that a run is over: its code learns that where it waits, once, and may clean up."""

import asyncio
import threading
from collections.abc import AsyncIterator

import httpx
import pytest
from holdshort import Agent, ExecutionCancelled
from holdshort._dispatches import Order
from holdshort.testing import ControlPlane

from sdk.python.tests.dispatching import Launcher, launching, listening, processing
from sdk.python.tests.support import eventually

Went = list[str]


@pytest.fixture
def went() -> Went:
    """What the code of the runs came to."""
    return []


@pytest.fixture
async def launcher(plane: ControlPlane, agent: Agent) -> AsyncIterator[Launcher]:
    async with listening(agent), launching(plane) as made:
        await made.registered()
        yield made


async def cancelled(launcher: Launcher, execution_id: str, reason: str = "no longer wanted") -> httpx.Response:
    """As an operator's cancellation: kept, then told."""
    launcher.plane.cancel(execution_id, reason)
    return await launcher.cancel(execution_id, reason)


async def test_at_whatever_it_waits_for(launcher: Launcher, plane: ControlPlane, agent: Agent, went: Went) -> None:
    works, cleaning, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @agent.reasoner()
    async def waits() -> None:
        works.set()
        try:
            await asyncio.Event().wait()
        except ExecutionCancelled as end:
            went.append(end.message)
            cleaning.set()
            async with asyncio.timeout(5):
                await may_end.wait()
            went.append("cleaned up")
            raise

    await launcher.start("run-1", "waits")
    await works.wait()
    assert (await cancelled(launcher, "run-1")).status_code == 202
    await cleaning.wait()
    assert (await cancelled(launcher, "run-1", "again")).status_code == 202
    may_end.set()
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["execution run-1 was cancelled: no longer wanted", "cleaned up"]
    kept = plane.execution("run-1")
    assert (kept.status, kept.status_reason) == ("cancelled", "no longer wanted")
    assert kept.error == "execution run-1 was cancelled: no longer wanted"


async def test_what_it_does_to_clean_up_does_not_count_as_cancelled(
    launcher: Launcher, agent: Agent, went: Went
) -> None:
    """Task groups and timeouts of newer Pythons look at that, and would cancel it once more."""
    works = asyncio.Event()

    @agent.reasoner()
    async def waits() -> None:
        works.set()
        try:
            await asyncio.Event().wait()
        finally:
            task = asyncio.current_task()
            went.append(f"cancelling {task.cancelling() if task else None}")

    await launcher.start("run-1", "waits")
    await works.wait()
    await cancelled(launcher, "run-1")
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["cancelling 0"]


async def test_before_its_code_began(launcher: Launcher, agent: Agent, went: Went) -> None:
    @agent.reasoner()
    async def begins() -> None:
        went.append("begun")

    run = launcher.queue("run-1", "begins")
    run.fence, run.instance_id = 1, next(iter(launcher.book.instances))
    agent.asgi.lifetime.dispatches.take("begins", {}, Order(execution_id="run-1", fence=1))
    agent.asgi.lifetime.dispatches.cancel("run-1", 1, "at once")
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == []


async def test_a_cancelled_pause_is_told_once(
    launcher: Launcher, plane: ControlPlane, agent: Agent, went: Went
) -> None:
    """It hears of it twice, by its question that is withdrawn and by the call; its clean-up is disturbed by neither."""
    told_first = asyncio.Event()

    @agent.reasoner()
    async def asks() -> None:
        try:
            await agent.pause("x")
        except ExecutionCancelled:
            told_first.set()
            went.append("cancelled")
            await may_end.wait()
            went.append("cleaned up")
            raise

    may_end = asyncio.Event()
    await launcher.start("run-1", "asks")
    await plane.asked()
    plane.cancel("run-1", "enough")
    await told_first.wait()
    assert (await launcher.cancel("run-1", "enough")).status_code == 202
    may_end.set()
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["cancelled", "cleaned up"]


async def test_the_tasks_of_its_code_end_too(launcher: Launcher, agent: Agent, went: Went) -> None:
    works = asyncio.Event()

    @agent.reasoner()
    async def groups() -> None:
        async def works_on() -> None:
            works.set()
            try:
                await asyncio.Event().wait()
            finally:
                went.append("task ended")

        async with asyncio.TaskGroup() as group:
            group.create_task(works_on())

    run = await launcher.start("run-1", "groups")
    await works.wait()
    await cancelled(launcher, "run-1")
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["task ended"]
    assert run.status == "cancelled"


async def test_what_it_returns_all_the_same_is_kept_and_the_status_stays(
    launcher: Launcher, plane: ControlPlane, agent: Agent
) -> None:
    works = asyncio.Event()

    @agent.reasoner()
    async def returns() -> str:
        works.set()
        try:
            await asyncio.Event().wait()
        except ExecutionCancelled:
            return "half done"
        return "never"

    await launcher.start("run-1", "returns")
    await works.wait()
    await cancelled(launcher, "run-1")
    await eventually(lambda: not processing(agent, "run-1"))
    kept = plane.execution("run-1")
    assert (kept.status, kept.result) == ("cancelled", "half done")


@pytest.mark.parametrize("pausing", [True, False])
async def test_a_plain_function_learns_it_by_its_next_call(
    launcher: Launcher, plane: ControlPlane, agent: Agent, went: Went, pausing: bool
) -> None:
    go = threading.Event()

    @agent.reasoner()
    def plain() -> None:
        if not pausing:
            go.wait(10)
        try:
            agent.pause_sync("x")
        except Exception:
            went.append("swallowed")
        except ExecutionCancelled as end:
            went.append(end.message.rpartition(": ")[2])
            raise

    await launcher.start("run-1", "plain")
    if pausing:
        await plane.asked()
    assert (await launcher.cancel("run-1", "stop it")).status_code == 202
    go.set()
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["stop it"]
    assert plane.execution("run-1").status == "cancelled"


async def test_only_whoever_has_the_run_is_told(launcher: Launcher, agent: Agent) -> None:
    works = asyncio.Event()

    @agent.reasoner()
    async def waits() -> None:
        works.set()
        await asyncio.Event().wait()

    await launcher.start("run-1", "waits")
    await works.wait()
    await launcher.give("run-1")
    stale = await launcher.cancel("run-1", "late", fence=1)
    assert (stale.status_code, stale.json()["error"], stale.json()["fence"]) == (409, "stale_instance", 2)
    assert processing(agent, "run-1")
    assert (await launcher.cancel("run-1", "late", fence=2)).status_code == 202
    await eventually(lambda: not processing(agent, "run-1"))
    gone = await launcher.cancel("run-1", "late", fence=2)
    assert (gone.status_code, gone.json()["error"]) == (404, "execution_not_found")


async def test_what_makes_no_sense_is_refused(launcher: Launcher, agent: Agent) -> None:
    (instance,) = launcher.book.instances.values()
    async with httpx.AsyncClient(base_url=instance.told.base_url) as client:
        url = "/_internal/executions/run-1/cancel"
        assert (await client.get(url)).status_code == 405
        assert (await client.post(url)).status_code == 422
        assert (await client.post(url, headers={"X-Holdshort-Fence": "x"})).status_code == 422
        assert (await client.post(url, headers={"X-Holdshort-Fence": "1"}, content=b"[")).status_code == 422
        assert (await client.post(url, headers={"X-Holdshort-Fence": "1"})).status_code == 404


@pytest.mark.parametrize("reasoner", ["works", "pauses", "plain"])
async def test_a_limit_that_passed_on_the_server_ends_it_as_its_own(
    launcher: Launcher, plane: ControlPlane, agent: Agent, went: Went, reasoner: str
) -> None:
    works = asyncio.Event()
    left_behind = threading.Event()

    @agent.reasoner("works")
    async def _() -> None:
        works.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            went.append("out of time")
            raise

    @agent.reasoner()
    async def pauses() -> None:
        try:
            await agent.pause("x")
        except asyncio.CancelledError:
            went.append("out of time")
            raise

    @agent.reasoner()
    def plain() -> None:
        works_too()
        left_behind.wait(10)

    def works_too() -> None:
        went.append("out of time")
        loop.call_soon_threadsafe(works.set)

    loop = asyncio.get_running_loop()
    await launcher.start("run-1", reasoner)
    await (plane.asked() if reasoner == "pauses" else works.wait())
    assert (await launcher.cancel("run-1", "execution_timeout")).status_code == 202
    run = await launcher.ended("run-1")
    left_behind.set()
    assert (run.status, went) == ("timeout", ["out of time"])
