"""A run has one holder: what another one took over ends here, reports nothing, and is not woken by an answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from holdshort import Agent, HandedBack, StaleInstance
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


@pytest.fixture
def go() -> asyncio.Event:
    """Lets a run's code make its next call."""
    return asyncio.Event()


@asynccontextmanager
async def stale(went: Went) -> AsyncIterator[None]:
    """Code that would go on after any ordinary error, and cleans up after what this is."""
    try:
        yield
    except Exception:
        went.append("swallowed")
    except (StaleInstance, asyncio.CancelledError):
        went.append("stale")
        await asyncio.sleep(0)
        went.append("cleaned up")
        raise


def asks(agent: Agent, go: asyncio.Event, went: Went) -> None:
    @agent.reasoner("code")
    async def _() -> None:
        await go.wait()
        async with stale(went):
            await agent.pause("x")


def notes(agent: Agent, go: asyncio.Event, went: Went) -> None:
    @agent.reasoner("code")
    async def _() -> None:
        await go.wait()
        agent.note("too late")
        async with stale(went):
            await asyncio.Event().wait()


def in_tasks(agent: Agent, go: asyncio.Event, went: Went) -> None:
    @agent.reasoner("code")
    async def _() -> None:
        async def works() -> None:
            async with stale(went):
                await asyncio.Event().wait()

        async def tells() -> None:
            await go.wait()
            await agent.pause("x")

        async with asyncio.TaskGroup() as group:
            group.create_task(works())
            group.create_task(tells())


def in_a_thread(agent: Agent, go: asyncio.Event, went: Went) -> None:
    loop = asyncio.get_running_loop()

    @agent.reasoner("code")
    def _() -> None:
        asyncio.run_coroutine_threadsafe(go.wait(), loop).result()
        try:
            agent.pause_sync("x")
        except Exception:
            went.append("swallowed")
        except StaleInstance:
            went.extend(("stale", "cleaned up"))
            raise


Code = Callable[[Agent, asyncio.Event, Went], None]


@pytest.mark.parametrize("code", [asks, notes, in_tasks, in_a_thread])
async def test_its_next_call_ends_it_and_nothing_is_reported(
    launcher: Launcher, plane: ControlPlane, agent: Agent, go: asyncio.Event, went: Went, code: Code
) -> None:
    code(agent, go, went)
    run = await launcher.start("run-1", "code")
    launcher.take_over("run-1")
    go.set()
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["stale", "cleaned up"]
    assert (run.status, run.ended_at) == ("running", None)
    assert plane.approvals() == []


async def test_code_that_swallows_it_reports_nothing_either(
    launcher: Launcher, agent: Agent, go: asyncio.Event
) -> None:
    @agent.reasoner()
    async def stubborn() -> str:
        await go.wait()
        try:
            await agent.pause("x")
        except BaseException:
            return "done all the same"
        return "never"

    @agent.reasoner()
    async def clumsy() -> None:
        await go.wait()
        try:
            await agent.pause("y")
        finally:
            raise RuntimeError("while cleaning up")

    runs = [await launcher.start("run-1", "stubborn"), await launcher.start("run-2", "clumsy")]
    for run in runs:
        launcher.take_over(run.execution_id)
    go.set()
    await eventually(lambda: not processing(agent, "run-1") and not processing(agent, "run-2"))
    assert [run.ended_at for run in runs] == [None, None]


async def test_its_end_is_not_reported_over_another_ones(
    launcher: Launcher, agent: Agent, go: asyncio.Event, plane: ControlPlane
) -> None:
    @agent.reasoner()
    async def works() -> str:
        await go.wait()
        return "late"

    run = await launcher.start("run-1", "works")
    launcher.take_over("run-1")
    go.set()
    await eventually(lambda: not processing(agent, "run-1"))
    assert "POST /api/v1/executions/run-1/status" in plane.calls
    assert (run.result, run.ended_at) == (None, None)


async def test_a_run_given_back_to_the_process_that_lost_it_starts_anew(
    launcher: Launcher, plane: ControlPlane, agent: Agent, go: asyncio.Event
) -> None:
    starts: list[str] = []
    cleaned = asyncio.Event()

    @agent.reasoner()
    async def works() -> str:
        starts.append("begun")
        try:
            return (await agent.pause("x")).feedback
        except StaleInstance:
            await cleaned.wait()
            starts.append("ended")
            raise

    await launcher.start("run-1", "works")
    await plane.asked()
    launcher.take_over("run-1")
    with pytest.raises(StaleInstance):
        # Any call under the old fence ends it, as this note's would.
        await agent.asgi.lifetime.dispatches._going["run-1"].run._keep_note("m", ())
    launcher.book.executions["run-1"].instance_id = None
    assert (await launcher.give("run-1")).status_code == 202
    cleaned.set()
    await eventually(lambda: starts == ["begun", "ended", "begun"])
    plane.decide("x", "approved", "once")
    assert (await launcher.ended("run-1")).result == "once"
    assert len(plane.approvals()) == 1


async def test_what_waits_while_its_process_counts_as_gone_is_not_woken_here(
    launcher: Launcher, plane: ControlPlane, agent: Agent, went: Went
) -> None:
    @agent.reasoner()
    async def acts() -> None:
        try:
            await agent.pause("x")
        except HandedBack:
            went.append("handed back")
            raise
        went.append("acted")

    run = await launcher.start("run-1", "acts")
    await plane.asked()
    node = agent.asgi.lifetime._node
    assert node is not None
    # The process stood still for longer than its lease: the run rests, and is answered before the next sign of life.
    node._held_until = 0.0
    run.instance_id = None
    launcher.book.instances.clear()
    plane.decide("x", "approved")
    await eventually(lambda: not processing(agent, "run-1"))
    assert went == ["handed back"]
    await launcher.registered()
    assert (await launcher.give("run-1")).status_code == 202
    await launcher.ended("run-1")
    assert went == ["handed back", "acted"]


async def test_a_process_that_stood_still_but_kept_its_lease_goes_on(
    launcher: Launcher, plane: ControlPlane, agent: Agent, went: Went
) -> None:
    @agent.reasoner()
    async def acts() -> str:
        return (await agent.pause("x")).feedback

    await launcher.start("run-1", "acts")
    await plane.asked()
    node = agent.asgi.lifetime._node
    assert node is not None
    node._held_until = 0.0
    beats = [call for call in plane.calls if call.endswith("/heartbeat")]
    plane.decide("x", "approved", "still here")
    assert (await launcher.ended("run-1")).result == "still here"
    assert len([call for call in plane.calls if call.endswith("/heartbeat")]) == len(beats) + 1


async def test_what_works_while_its_process_counts_as_gone_may_get_its_run_back(
    launcher: Launcher, agent: Agent, go: asyncio.Event
) -> None:
    starts: list[str] = []

    @agent.reasoner()
    async def works() -> list[str]:
        starts.append("begun")
        await go.wait()
        return starts

    run = await launcher.start("run-1", "works")
    launcher.book.instances.clear()
    run.instance_id, run.status = None, "queued"
    assert agent.asgi.lifetime._node is not None
    agent.asgi.lifetime._node.look_again()
    await launcher.registered()
    assert (await launcher.give("run-1")).status_code == 202
    go.set()
    assert (await launcher.ended("run-1")).result == ["begun"]
