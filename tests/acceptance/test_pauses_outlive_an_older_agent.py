"""An older agent is killed or stopped while its run waits; the decision reaches whatever process waits for it next."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.desk import Desk
from tests.acceptance.peers import Peer
from tests.durability.plane import API, Plane, free_port, until

pytestmark = pytest.mark.timeout(300)

_NUMBERS = itertools.count(1)


@pytest.fixture
def restarting(peer_python: Path, plane: Plane, tmp_path: Path) -> Iterator[Peer]:
    """An agent of this test's own, started, and under a name of its own: others' leases have not passed yet."""
    made = Peer(peer_python, plane.url, tmp_path, f"peer-{next(_NUMBERS)}")
    try:
        made.start()
        yield made
    finally:
        made.close()


async def paused(desk: Desk, agent: Peer, *request_ids: str) -> dict[str, str]:
    """Runs of the agent that wait, by the id that each asked under."""
    runs = {each: await desk.start(f"{agent.node_id}.once", request_id=each) for each in request_ids}
    for run in runs.values():
        await desk.until_waiting(run)
    return runs


async def restart(agent: Peer, runs: dict[str, str], *, port: int | None = None) -> None:
    """Start the agent again, which then waits for its pauses as its documents say."""
    known = [f"{run}={request_id}" for request_id, run in runs.items()]
    await asyncio.to_thread(agent.start, *known, port=port)


async def check_resumed(desk: Desk, agent: Peer, runs: dict[str, str]) -> None:
    """The new process saw each decision once and reported; no code of the old one's ran again.

    Such an agent registers before it listens: a decision that finds it in between is told a while later.
    """
    for request_id, run in runs.items():
        over = await desk.until_over(run, seconds=90)
        assert (over["status"], over["result"]["feedback"]) == ("succeeded", f"for {request_id}")
    assert sorted(agent.journal("resumed")) == sorted(runs)
    assert sorted(agent.journal("started")) == sorted(runs)
    await until(lambda: all_delivered(desk, runs))


async def all_delivered(desk: Desk, runs: dict[str, str]) -> bool:
    """Whether nothing of these runs is left to be told."""
    return not {each["execution_id"] for each in await undelivered(desk)} & set(runs.values())


async def undelivered(desk: Desk) -> list[dict[str, Any]]:
    reply = await desk.client.get(f"{API}/deliveries", params={"status": "pending"})
    return list(reply.json()["deliveries"])


async def decide(desk: Desk, runs: dict[str, str], request_id: str) -> None:
    await desk.decide(runs[request_id], request_id, feedback=f"for {request_id}")


async def test_killed_and_started_again_at_the_same_port(desk: Desk, restarting: Peer):
    runs = await paused(desk, restarting, "before", "during", "after")
    await asyncio.to_thread(restarting.kill)
    # Told to nobody, again and again: by then the next try is half a minute away.
    await decide(desk, runs, "before")
    await until(lambda: tried(desk, runs["before"], 3))
    starting = asyncio.create_task(restart(restarting, runs))
    await decide(desk, runs, "during")
    await starting
    await decide(desk, runs, "after")
    await check_resumed(desk, restarting, runs)


async def tried(desk: Desk, run: str, times: int) -> bool:
    return any(each["execution_id"] == run and each["attempts"] >= times for each in await undelivered(desk))


async def test_stopped_and_started_again_at_another_port(desk: Desk, restarting: Peer):
    runs = await paused(desk, restarting, "before", "after")
    restarting.terminate()
    await asyncio.to_thread(restarting.wait_until_gone)
    for run in runs.values():
        left = await desk.look(run)
        assert (left["status"], left["approval_status"]) == ("waiting", "pending")
        assert left["status_reason"] == "waiting_for_node"
    await decide(desk, runs, "before")
    await restart(restarting, runs, port=free_port())
    await decide(desk, runs, "after")
    await check_resumed(desk, restarting, runs)


async def test_stopped_while_it_works_a_run_ends_as_its_code_does(desk: Desk, restarting: Peer):
    quick = await desk.start(f"{restarting.node_id}.slow", name="quick", seconds=1)
    stuck = await desk.start(f"{restarting.node_id}.endless", name="stuck")
    await until(lambda: wrote(restarting, "started", "quick"))
    await until(lambda: wrote(restarting, "started", "stuck"))
    restarting.terminate()
    await asyncio.to_thread(restarting.wait_until_gone)
    assert (await desk.until_over(quick))["result"] == "quick"
    cut = await desk.until_over(stuck)
    assert (cut["status"], cut["error"]) == ("cancelled", "cancelled during graceful shutdown")


async def test_killed_while_it_works_its_run_is_not_repeated_and_can_be_cancelled(desk: Desk, restarting: Peer):
    node = restarting.node_id
    lost = await desk.start(f"{node}.endless", name="lost")
    await until(lambda: wrote(restarting, "started", "lost"))
    await asyncio.to_thread(restarting.kill)
    await asyncio.to_thread(restarting.start)
    # Whatever was due at the node has been given to it before this one.
    assert (await desk.execute(f"{node}.slow", name="next", seconds=0))["result"] == "next"
    assert restarting.journal("started") == ["lost", "next"]
    assert (await desk.look(lost))["status"] == "running"
    await desk.client.post(f"{API}/executions/{lost}/cancel")
    assert (await desk.look(lost))["status"] == "cancelled"


async def test_a_result_is_reported_again_when_the_control_plane_is_back(desk: Desk, restarting: Peer, plane: Plane):
    run = await desk.start(f"{restarting.node_id}.slow", name="patient", seconds=0.5)
    await until(lambda: wrote(restarting, "started", "patient"))
    await asyncio.to_thread(plane.kill)
    await until(lambda: wrote(restarting, "ended", "patient"))
    await until(lambda: printed(restarting, f"attempt 1 failed for {run}"))
    await asyncio.to_thread(plane.start)
    over = await desk.until_over(run)
    assert (over["status"], over["result"]) == ("succeeded", "patient")


async def wrote(agent: Peer, key: str, value: str) -> bool:
    return value in agent.journal(key)


async def printed(agent: Peer, text: str) -> bool:
    return text in agent.output()


@pytest.mark.proof
async def test_killed_and_started_again_at_another_port(desk: Desk, restarting: Peer):
    """Nobody says that the old process is gone, so the old address is given up when its lease of 90 s has passed."""
    runs = await paused(desk, restarting, "moved")
    await asyncio.to_thread(restarting.kill)
    await decide(desk, runs, "moved")
    await restart(restarting, runs, port=free_port())
    await desk.until_over(runs["moved"], seconds=120)
    await check_resumed(desk, restarting, runs)


async def test_the_control_plane_is_killed_while_the_agent_waits(desk: Desk, restarting: Peer, plane: Plane):
    runs = await paused(desk, restarting, "unplugged")
    await asyncio.to_thread(plane.kill)
    await asyncio.to_thread(plane.start)
    await decide(desk, runs, "unplugged")
    over = await desk.until_over(runs["unplugged"])
    assert (over["status"], over["result"]["feedback"]) == ("succeeded", "for unplugged")
