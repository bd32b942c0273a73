"""An older agent is killed or stopped while its run waits; the decision reaches whatever process waits for it next."""

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path

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


async def paused(desk: Desk, agent: Peer, request_id: str) -> str:
    run = await desk.start(f"{agent.node_id}.once", request_id=request_id)
    await desk.until_waiting(run)
    return run


async def restart(agent: Peer, run: str, request_id: str, *, port: int | None = None) -> None:
    """Start the agent again, which then waits for its pause as its documents say."""
    await asyncio.to_thread(agent.start, f"{run}={request_id}", port=port)


async def check_resumed(desk: Desk, agent: Peer, run: str, request_id: str, feedback: str) -> None:
    """The new process saw the decision once and reported; the old one's code did not run again."""
    over = await desk.until_over(run)
    assert (over["status"], over["result"]["feedback"], over["result"]["approved"]) == ("succeeded", feedback, True)
    assert agent.journal("resumed") == [request_id]
    assert agent.journal("started") == [request_id]
    await until(lambda: delivered(desk, run))


async def delivered(desk: Desk, run: str) -> bool:
    """Whether nothing of this run is left to be told."""
    reply = await desk.client.get(f"{API}/deliveries", params={"status": "pending"})
    return all(each["execution_id"] != run for each in reply.json()["deliveries"])


@pytest.mark.parametrize("moment", ["before", "during", "after"])
async def test_killed_and_started_again_at_the_same_port(desk: Desk, restarting: Peer, moment: str):
    request_id = f"same-{moment}"
    run = await paused(desk, restarting, request_id)
    await asyncio.to_thread(restarting.kill)
    if moment == "before":
        # Told to nobody, again and again: by now the next try is half a minute away.
        await desk.decide(run, request_id, feedback=moment)
        await until(lambda: tried(desk, run, 3), seconds=20)
        await restart(restarting, run, request_id)
    elif moment == "during":
        starting = asyncio.create_task(restart(restarting, run, request_id))
        await desk.decide(run, request_id, feedback=moment)
        await starting
    else:
        await restart(restarting, run, request_id)
        await desk.decide(run, request_id, feedback=moment)
    await check_resumed(desk, restarting, run, request_id, moment)


async def tried(desk: Desk, run: str, times: int) -> bool:
    reply = await desk.client.get(f"{API}/deliveries", params={"status": "pending"})
    return any(each["execution_id"] == run and each["attempts"] >= times for each in reply.json()["deliveries"])


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_stopped_and_started_again_at_another_port(desk: Desk, restarting: Peer, moment: str):
    request_id = f"other-{moment}"
    run = await paused(desk, restarting, request_id)
    restarting.terminate()
    await asyncio.to_thread(restarting.wait_until_gone)
    left = await desk.look(run)
    assert (left["status"], left["approval_status"]) == ("waiting", "pending")
    assert left["status_reason"] == "waiting_for_node"
    if moment == "before":
        await desk.decide(run, request_id, feedback=moment)
    await restart(restarting, run, request_id, port=free_port())
    if moment == "after":
        await desk.decide(run, request_id, feedback=moment)
    await check_resumed(desk, restarting, run, request_id, moment)


async def test_stopped_while_it_works_a_run_ends_as_its_code_does(desk: Desk, restarting: Peer):
    quick = await desk.start(f"{restarting.node_id}.slow", name="quick", seconds=1)
    stuck = await desk.start(f"{restarting.node_id}.endless", name="stuck")
    await until(lambda: both_started(restarting))
    restarting.terminate()
    await asyncio.to_thread(restarting.wait_until_gone)
    assert (await desk.until_over(quick))["result"] == "quick"
    cut = await desk.until_over(stuck)
    assert (cut["status"], cut["error"]) == ("cancelled", "cancelled during graceful shutdown")


async def both_started(agent: Peer) -> bool:
    return {"quick", "stuck"} <= set(agent.journal("started"))


@pytest.mark.proof
async def test_killed_and_started_again_at_another_port(desk: Desk, restarting: Peer):
    """Nobody says that the old process is gone, so the old address is given up when its lease of 90 s has passed."""
    run = await paused(desk, restarting, "moved")
    await asyncio.to_thread(restarting.kill)
    await desk.decide(run, "moved", feedback="moved")
    await restart(restarting, run, "moved", port=free_port())
    await desk.until_over(run, seconds=120)
    await check_resumed(desk, restarting, run, "moved", "moved")


async def test_the_control_plane_is_killed_while_the_agent_waits(desk: Desk, restarting: Peer, plane: Plane):
    run = await paused(desk, restarting, "unplugged")
    await asyncio.to_thread(plane.kill)
    await asyncio.to_thread(plane.start)
    await desk.decide(run, "unplugged", feedback="back")
    over = await desk.until_over(run)
    assert (over["status"], over["result"]["feedback"]) == ("succeeded", "back")
