import asyncio
import gc
import tracemalloc

from holdshort import Agent, _shared_wait
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane

from sdk.python.tests.support import eventually

WAIT = "POST /api/v1/approvals/wait"


async def test_a_thousand_pauses_arm_a_few_calls(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = [asyncio.create_task(agent.pause(f"r{n}")) for n in range(1000)]
        await eventually(lambda: len(plane.pending()) == 1000)
        await eventually(lambda: plane.calls.count(WAIT) >= 1)
        assert plane.calls.count(WAIT) <= 5
        for n in range(0, 1000, 2):
            plane.decide(f"r{n}", "approved", str(n))
        results = await asyncio.gather(*waiting[::2])
        assert [r.feedback for r in results] == [str(n) for n in range(0, 1000, 2)]
        for n in range(1, 1000, 2):
            plane.decide(f"r{n}", "approved")
        await asyncio.gather(*waiting[1::2])
    assert len(agent.registry) == 0
    assert plane.calls.count(WAIT) < 20


async def test_a_waiting_pause_is_small(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("warm"))
        plane.decide(await plane.asked(), "approved")
        await waiting
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.take_snapshot()
        pauses = [asyncio.create_task(agent.pause(f"r{n}")) for n in range(1000)]
        await eventually(lambda: len(plane.pending()) == 1000, seconds=20)
        gc.collect()
        grown = tracemalloc.take_snapshot().compare_to(before, "filename")
        tracemalloc.stop()
        ours = sum(each.size_diff for each in grown if "/testing/" not in each.traceback[0].filename)
        assert ours / 1000 <= 10 * 1024
        for pause in pauses:
            pause.cancel()
        await asyncio.gather(*pauses, return_exceptions=True)


async def test_more_than_one_call_takes(plane: ControlPlane, agent: Agent) -> None:
    agent_limit, _shared_wait._CALL_LIMIT = _shared_wait._CALL_LIMIT, 10
    try:
        async with agent.execution("run-1"):
            waiting = [asyncio.create_task(agent.pause(f"r{n}")) for n in range(25)]
            await eventually(lambda: len(plane.pending()) == 25)
            for n in reversed(range(25)):
                plane.decide(f"r{n}", "approved")
            assert all(result.approved for result in await asyncio.gather(*waiting))
    finally:
        _shared_wait._CALL_LIMIT = agent_limit


async def test_a_control_plane_with_too_many_waits_is_not_hammered(plane: ControlPlane) -> None:
    class Full:
        """Answers every wait at once with nothing, as one past its limit does."""

        calls = 0

        async def exchange(self, call: Call[object]) -> Reply:
            if call.path.endswith("/approvals/wait"):
                self.calls += 1
                return Reply(200, {}, b'{"approvals":[]}')
            return await plane.transport.exchange(call)

        async def aclose(self) -> None:
            pass

    agent, full = Agent("n", "1", callback="pull"), Full()
    agent.use_transport(full)  # type: ignore[arg-type]
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("x", timeout=0.5))
        await plane.asked()
        assert (await waiting).expired
    assert full.calls <= 2


async def test_push_alone_holds_no_call(plane: ControlPlane) -> None:
    agent = plane.connect(Agent("n", "1", callback="push", callback_url="http://agent.test"))
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("x"))
        await plane.asked()
        await eventually(lambda: len(agent.registry) == 1)
        assert WAIT not in plane.calls
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
