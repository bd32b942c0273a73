"""SIGTERM: what waits is handed back at once, what runs may finish; a real process each time."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from holdshort.testing import ControlPlane

from sdk.python.tests.support import Wire, eventually, serving

PROGRAM = """
import asyncio, pathlib, sys
from holdshort import Agent

app = Agent("n", "1", sys.argv[1])

@app.reasoner()
async def asks() -> str:
    return (await app.pause("x")).feedback

@app.reasoner()
def asks_in_a_thread() -> str:
    return app.pause_sync("y").feedback

@app.reasoner()
async def works() -> str:
    pathlib.Path(sys.argv[3]).touch()
    while not pathlib.Path(sys.argv[4]).exists():
        await asyncio.sleep(0.01)
    return "finished"

app.run(port=int(sys.argv[2]), drain_seconds=5)
"""


class Program:
    """The agent's process."""

    def __init__(self, process: asyncio.subprocess.Process, url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.started = folder / "started"
        self.may_finish = folder / "may finish"


@asynccontextmanager
async def program(control_plane: str, folder: Path, port: int) -> AsyncIterator[Program]:
    arguments = [control_plane, str(port), str(folder / "started"), str(folder / "may finish")]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, *arguments)
    running = Program(process, f"http://127.0.0.1:{port}", folder)
    try:
        async with asyncio.timeout(20), httpx.AsyncClient() as client:
            while not await answers(client, f"{running.url}/health"):  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.02)
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def answers(client: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await client.get(url)).status_code == 200
    except httpx.TransportError:
        return False


async def test_sigterm_hands_back_what_waits_and_lets_what_runs_finish(
    plane: ControlPlane, wire: Wire, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with (
        serving(wire) as control_plane,
        program(control_plane, tmp_path, unused_tcp_port) as agent,
        httpx.AsyncClient(base_url=agent.url, timeout=20) as http,
    ):
        calls = [
            asyncio.create_task(http.post(f"/reasoners/{name}", headers={"X-Execution-ID": name}))
            for name in ("asks", "asks_in_a_thread", "works")
        ]
        asked = await plane.asked("x")
        await plane.asked("y")
        await eventually(agent.started.exists)
        kept = plane._book.approvals[asked.approval_id].ask
        assert kept.callback_url == f"{agent.url}/webhooks/approval"
        agent.process.send_signal(signal.SIGTERM)
        for waited in calls[:2]:
            answer = await waited
            assert (answer.status_code, answer.json()["error"]) == (503, "handed_back")
        agent.may_finish.touch()
        assert (await calls[2]).json()["result"] == "finished"
        async with asyncio.timeout(10):
            await agent.process.wait()
    assert [plane.execution(name).status for name in ("asks", "asks_in_a_thread", "works")] == [
        "waiting",
        "waiting",
        "succeeded",
    ]


async def test_killed_and_called_again_under_its_execution_id(
    plane: ControlPlane, wire: Wire, tmp_path: Path, unused_tcp_port: int
) -> None:
    named = {"X-Execution-ID": "run-1"}
    async with serving(wire) as control_plane, httpx.AsyncClient(timeout=20) as http:
        async with program(control_plane, tmp_path, unused_tcp_port) as agent:
            calling = asyncio.create_task(http.post(f"{agent.url}/reasoners/asks", headers=named))
            approval = await plane.asked()
            agent.process.kill()
            await asyncio.gather(calling, return_exceptions=True)
        assert plane.execution("run-1").status == "waiting"
        plane.decide(approval, "approved", "meanwhile")
        async with program(control_plane, tmp_path, unused_tcp_port) as agent:
            answer = await http.post(f"{agent.url}/reasoners/asks", headers=named)
        assert answer.json() == {"execution_id": "run-1", "status": "succeeded", "result": "meanwhile"}
    assert len(plane.approvals()) == 1
