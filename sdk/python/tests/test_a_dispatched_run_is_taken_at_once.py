import asyncio
import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane
from holdshort.testing._book import Ask

from sdk.python.tests.dispatching import Launcher, launching, listening, processing
from sdk.python.tests.support import eventually


@pytest.fixture
def may_finish(agent: Agent) -> asyncio.Event:
    """Lets `works` go on, which counts its starts in the reports it gives."""
    event = asyncio.Event()
    starts: list[str] = []

    @agent.reasoner(timeout_seconds=5)
    async def works(document: str) -> list[str]:
        starts.append(document)
        await event.wait()
        agent.note("done")
        return starts

    @agent.reasoner()
    async def asks() -> str:
        return (await agent.pause("x")).feedback

    @agent.reasoner(timeout_seconds=0.01)
    async def limited() -> str:
        first = await agent.pause("x")
        await event.wait()
        return first.feedback

    @agent.reasoner()
    def in_a_thread() -> str:
        return agent.pause_sync("x").feedback

    return event


@pytest.fixture
async def launcher(plane: ControlPlane, agent: Agent, may_finish: asyncio.Event) -> AsyncIterator[Launcher]:
    async with listening(agent), launching(plane) as made:
        await made.registered()
        yield made


async def test_it_is_answered_at_once_and_reports_by_itself(
    plane: ControlPlane, launcher: Launcher, may_finish: asyncio.Event, agent: Agent
) -> None:
    await launcher.start("run-1", "works", document="d")
    assert processing(agent, "run-1")
    assert plane.execution("run-1").status == "running"
    may_finish.set()
    assert (await launcher.ended("run-1")).result == ["d"]
    assert plane.notes("run-1") == ["done"]
    assert "POST /api/v1/executions" not in plane.calls
    await eventually(lambda: not processing(agent, "run-1"))


@pytest.mark.parametrize("reasoner", ["asks", "in_a_thread"])
async def test_its_pause_is_asked_under_its_fence(plane: ControlPlane, launcher: Launcher, reasoner: str) -> None:
    await launcher.start("run-1", reasoner)
    plane.decide(await plane.asked(), "approved", "fine")
    assert (await launcher.ended("run-1")).result == "fine"
    assert plane.execution("run-1").status == "succeeded"


async def test_its_pause_is_expired_under_its_fence(agent: Agent, launcher: Launcher) -> None:
    @agent.reasoner()
    async def gives_up() -> str:
        return (await agent.pause("x", timeout=0.05, on_expiry="resume")).decision

    await launcher.start("run-1", "gives_up")
    assert (await launcher.ended("run-1")).result == "expired"


async def test_waiting_for_resume_moves_the_callback_under_its_fence(
    plane: ControlPlane, launcher: Launcher, agent: Agent
) -> None:
    @agent.reasoner()
    async def looks() -> str:
        return (await agent.wait_for_resume("x")).feedback

    run = launcher.queue("run-1", "looks")
    launcher.book.ask(run, Ask(approval_request_id="x"))
    await launcher.give("run-1")
    await eventually(lambda: "POST /api/v1/approvals/apr_00000001/callback" in plane.calls)
    plane.decide("x", "approved", "found")
    assert (await launcher.ended("run-1")).result == "found"


async def test_what_cannot_be_run_is_refused(launcher: Launcher, plane: ControlPlane) -> None:
    launcher.queue("run-1", "works", document=3)
    refused = await launcher.give("run-1")
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "document")
    launcher.queue("run-2", "unknown")
    refused = await launcher.give("run-2")
    assert (refused.status_code, refused.json()["error"]) == (404, "reasoner_not_found")
    for number, (header, value) in enumerate(
        [
            ("X_Holdshort_Fence", "first"),
            ("X_Holdshort_Steps", "many"),
            ("X_Holdshort_Time_Left", "soon"),
            ("X_Holdshort_Time_Left", "nan"),
            ("X_Execution_ID", "a run"),
            ("X_Execution_ID", ""),
        ]
    ):
        launcher.queue(f"odd-{number}", "works", document="d")
        refused = await launcher.give(f"odd-{number}", **{header: value})
        field = refused.json()["errors"][0]["field"]
        assert (refused.status_code, field[:11]) == (422, header.replace("_", "-")[:11])
    assert [call for call in plane.calls if "/executions" in call] == []


async def test_its_input_may_be_as_large_as_the_control_plane_takes(
    launcher: Launcher, may_finish: asyncio.Event, plane: ControlPlane
) -> None:
    may_finish.set()
    await launcher.start("run-1", "works", document="d" * 7_000_000)
    assert len((await launcher.ended("run-1")).result[0]) == 7_000_000
    launcher.queue("run-2", "works", document="d" * 9_000_000)
    assert (await launcher.give("run-2")).status_code == 413


async def test_the_same_dispatch_again_has_no_effect(
    launcher: Launcher, may_finish: asyncio.Event, agent: Agent
) -> None:
    run = await launcher.start("run-1", "works", document="d")
    url = launcher.book.instances[run.instance_id or ""].told.base_url
    for fence in ("1", "0"):
        assert (await launcher.send(run, url, X_Holdshort_Fence=fence)).status_code == 202
    may_finish.set()
    await launcher.ended("run-1")
    await eventually(lambda: not processing(agent, "run-1"))
    assert (await launcher.send(run, url)).status_code == 202
    assert not processing(agent, "run-1")
    assert run.result == ["d"]


async def test_a_run_that_was_meant_for_an_earlier_process_here_is_not_taken(
    launcher: Launcher, may_finish: asyncio.Event, agent: Agent
) -> None:
    run = launcher.queue("run-1", "works", document="d")
    refused = await launcher.give("run-1", X_Holdshort_Instance="earlier")
    assert (refused.status_code, refused.json()["error"]) == (503, "other_instance")
    assert not processing(agent, "run-1")
    url = launcher.book.instances[run.instance_id or ""].told.base_url
    assert (await launcher.send(run, url, X_Holdshort_Instance=run.instance_id or "")).status_code == 202
    may_finish.set()
    assert (await launcher.ended("run-1")).result == ["d"]


async def test_a_run_that_comes_again_goes_on_under_the_new_fence(
    launcher: Launcher, may_finish: asyncio.Event, plane: ControlPlane
) -> None:
    run = await launcher.start("run-1", "works", document="d")
    assert (await launcher.give("run-1")).status_code == 202
    assert run.fence == 2
    may_finish.set()
    assert (await launcher.ended("run-1")).result == ["d"]
    assert plane.notes("run-1") == ["done"]


async def test_a_call_on_its_way_while_the_run_came_again_is_sent_again(
    launcher: Launcher, may_finish: asyncio.Event, plane: ControlPlane
) -> None:
    may_finish.set()
    with plane.away():
        run = launcher.queue("run-1", "works", document="d")
        await launcher.give("run-1")
        # Its note is on the way, and will be refused: the run is somebody else's until it is given here again.
        launcher.book.executions["run-1"].fence += 5
        assert (await launcher.send(run, launcher.book.instances[run.instance_id or ""].told.base_url)).is_success
    assert (await launcher.ended("run-1")).result == ["d"]
    assert plane.notes("run-1") == ["done"]


async def test_the_time_that_is_left_is_its_limit(
    plane: ControlPlane, launcher: Launcher, may_finish: asyncio.Event
) -> None:
    launcher.queue("run-1", "works", document="d")
    await launcher.give("run-1", X_Holdshort_Time_Left="0.05")
    assert (await launcher.ended("run-1", seconds=3)).status == "timeout"
    launcher.queue("run-2", "limited")
    await launcher.give("run-2", X_Holdshort_Time_Left="3600")
    loop = asyncio.get_running_loop()
    waited_from = loop.time()
    await eventually(lambda: loop.time() - waited_from > 0.1)
    may_finish.set()
    plane.decide("x", "approved", "in time")
    assert (await launcher.ended("run-2")).result == "in time"


async def test_waiting_does_not_count_against_the_time_that_is_left(
    plane: ControlPlane, launcher: Launcher, may_finish: asyncio.Event
) -> None:
    may_finish.set()
    launcher.queue("run-1", "asks")
    await launcher.give("run-1", X_Holdshort_Time_Left="0.2")
    await plane.asked()
    loop = asyncio.get_running_loop()
    waited_from = loop.time()
    await eventually(lambda: loop.time() - waited_from > 0.4)
    plane.decide("x", "approved", "late")
    assert (await launcher.ended("run-1")).result == "late"


async def test_what_it_raises_is_reported_and_logged(
    agent: Agent, launcher: Launcher, caplog: pytest.LogCaptureFixture
) -> None:
    @agent.reasoner()
    async def breaks() -> None:
        raise RuntimeError("no such file")

    with caplog.at_level(logging.WARNING, "holdshort"):
        await launcher.start("run-1", "breaks")
        run = await launcher.ended("run-1")
        await eventually(lambda: not processing(agent, "run-1"))
    assert (run.status, run.error) == ("failed", "RuntimeError: no such file")
    (record,) = [each for each in caplog.records if "run-1" in each.getMessage()]
    assert record.exc_info


async def test_a_call_without_a_fence_does_not_join_it(
    launcher: Launcher, may_finish: asyncio.Event, plane: ControlPlane
) -> None:
    run = await launcher.start("run-1", "works", document="d")
    url = launcher.book.instances[run.instance_id or ""].told.base_url
    async with httpx.AsyncClient(base_url=url) as client:
        named = {"X-Execution-ID": "run-1"}
        answer = await client.post("/reasoners/works", json={"document": "d"}, headers=named)
    assert (answer.status_code, answer.json()["error"]) == (409, "execution_exists")


async def test_an_agent_that_stops_takes_nothing_new(launcher: Launcher, agent: Agent) -> None:
    agent.registry.draining = True
    launcher.queue("run-1", "works", document="d")
    refused = await launcher.give("run-1")
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert not processing(agent, "run-1")
