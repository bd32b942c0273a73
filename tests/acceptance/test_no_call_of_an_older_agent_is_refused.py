"""Everything that an older agent sends in its life is answered, and nothing of it is a fault in the server's log."""

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.desk import Desk
from tests.acceptance.peers import Peer
from tests.acceptance.recorder import recorder
from tests.durability.plane import Plane, free_port
from tests.figures import Figures

# It asks for a stream of its memory's changes at each start and does without: there is no such memory here.
REFUSED = {("GET", "/api/v1/memory/events/ws", 404)}


@pytest.mark.timeout(300)
async def test_from_its_start_to_its_stop(
    peer_python: Path, plane: Plane, desk: Desk, tmp_path: Path, figures: Figures
):
    async with recorder(plane.url, free_port()) as between:
        agent = Peer(peer_python, between.url, tmp_path, "traced", addressed=False)
        try:
            await asyncio.to_thread(agent.start)
            for target, request_id in (("noting", "noted"), ("nesting", "nested")):
                await pause_and_go_on(desk, target, request_id)
            called = await desk.start("traced.calling", target="traced.once", argument={"request_id": "called"})
            await answer(desk, "called")
            await desk.until_over(called)
            await desk.execute("traced.failing", kind="outcome")
            await desk.execute("traced.calling", target="traced.double", argument={"number": 4})
            agent.terminate()
            await asyncio.to_thread(agent.wait_until_gone)
        finally:
            await asyncio.to_thread(agent.close)
    refused = {(call.method, call.path, call.status) for call in between.calls if not 200 <= call.status < 300}
    assert refused <= REFUSED
    kinds = {"/".join(part for part in call.path.split("/") if "_" not in part) for call in between.calls}
    figures("calls of an older agent", calls=len(between.calls), kinds=len(kinds), refused=len(refused))
    assert plane.faults() == []


async def pause_and_go_on(desk: Desk, target: str, request_id: str) -> None:
    run = await desk.start(f"traced.{target}", request_id=request_id)
    await answer(desk, request_id)
    await desk.until_over(run)


async def answer(desk: Desk, request_id: str) -> None:
    asked = await desk.until_asked(request_id)
    await desk.decide(asked["execution_id"], request_id)
