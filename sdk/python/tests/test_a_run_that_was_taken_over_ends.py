"""A run has one holder: what another one took over ends here, reports nothing, and is not woken by an answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from holdshort import Agent, Conflict, HandedBack, StaleInstance
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


async def test_only_its_own_code_may_ask_in_it(launcher: Launcher, plane: ControlPlane, agent: Agent) -> None:
    """Code elsewhere can wait for its answers, though not move them; it is not ended for trying."""

    @agent.reasoner()
    async def asks() -> str:
        return (await agent.pause("x")).feedback

    await launcher.start("run-1", "asks")
    await plane.asked()
    with pytest.raises(Conflict, match="the run's own code") as refused:
        await agent.pause("y", execution_id="run-1")
    assert refused.value.code == "stale_instance"
    looking = asyncio.create_task(agent.wait_for_resume("x", execution_id="run-1"))
    await eventually(lambda: "POST /api/v1/approvals/apr_00000001/callback" in plane.calls)
    plane.decide("x", "approved", "for both")
    assert (await looking).feedback == "for both"
    assert (await launcher.ended("run-1")).result == "for both"


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


async def test_what_it_let_go_of_is_handed_back_in_case_nobody_took_it(
    launcher: Launcher, plane: ControlPlane, agent: Agent
) -> None:
    @agent.reasoner()
    async def asks() -> None:
        await agent.pause("x")

    run = await launcher.start("run-1", "asks")
    await plane.asked()
    holder = run.instance_id
    launcher.book.instances.clear()
    agent.asgi.lifetime.changed()
    await eventually(lambda: not processing(agent, "run-1"))
    # It is registered again before anybody noticed that it was gone: the run would be nobody's, and held by it.
    await eventually(lambda: run.instance_id is None)
    assert list(launcher.book.instances) == [holder]
    assert run.status == "waiting"


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
    assert (await launcher.ended("run-1", seconds=2)).result == "still here"
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
