"""SIGTERM with dispatched runs: what waits is handed back, what works may finish, the rest is released; real processes.

The order matters: nothing new comes while runs are given back, and the goodbye is the last that is heard.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from holdshort import Agent
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane
from litestar import Litestar, asgi

from sdk.python.tests.dispatching import Launcher, launching, listening, processing
from sdk.python.tests.support import Wire, eventually, serving

PROGRAM = """
import asyncio, pathlib, sys, time
from holdshort import Agent

app = Agent("contract-reviewer", "1", sys.argv[1])
folder = pathlib.Path(sys.argv[2])

@app.reasoner()
async def asks(name: str = "x") -> str:
    try:
        return (await app.pause(name)).feedback
    finally:
        await asyncio.sleep(0)
        with open(folder / "cleaned up", "a") as file:
            file.write(name + " ")

@app.reasoner()
def asks_in_a_thread() -> str:
    try:
        return app.pause_sync("y").feedback
    finally:
        with open(folder / "cleaned up", "a") as file:
            file.write("y ")

@app.reasoner()
async def works(then: str = "") -> str:
    (folder / "started").touch()
    while not (folder / "may finish").exists():
        await asyncio.sleep(0.01)
    return (await app.pause(then)).feedback if then else "finished"

@app.reasoner()
def works_in_a_thread() -> str:
    (folder / "started").touch()
    while True:
        time.sleep(0.01)

app.run(port=int(sys.argv[4]), drain_seconds=int(sys.argv[3]))
"""


class Program:
    """The agent's process."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self._folder = folder

    async def started(self) -> None:
        await eventually((self._folder / "started").exists)

    def may_finish(self) -> None:
        (self._folder / "may finish").touch()

    def cleaned_up(self) -> list[str]:
        return sorted((self._folder / "cleaned up").read_text().split())

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    async def ended(self, seconds: float = 10) -> float:
        """The seconds until it was gone."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(seconds):
            await self.process.wait()
        return loop.time() - began


@asynccontextmanager
async def program(control_plane: str, folder: Path, drain_seconds: int = 5, port: int = 0) -> AsyncIterator[Program]:
    arguments = [control_plane, str(folder), str(drain_seconds), str(port)]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROGRAM, *arguments)
    try:
        yield Program(process, folder)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.fixture
async def launcher(plane: ControlPlane) -> AsyncIterator[Launcher]:
    async with launching(plane) as made:
        yield made


class Heard(Wire):
    """The control plane, which keeps what it was told about nodes, in order."""

    def __init__(self, plane: ControlPlane) -> None:
        super().__init__(plane)
        self.told: list[tuple[str, Any]] = []

    async def _reply(self, call: Any) -> Any:
        reply = await super()._reply(call)
        if "/nodes/" in call.path or call.path.endswith(("/status", "/request-approval")):
            self.told.append((call.path.rpartition("/")[2], json.loads(call.body or b"{}")))
        return reply

    def words(self) -> list[str]:
        """What it was told, without signs of life between."""
        return [f"{word} {body['status']}" if word == "heartbeat" else word for word, body in self.told]


@pytest.fixture
def heard(plane: ControlPlane) -> Heard:
    return Heard(plane)


async def test_it_takes_nothing_new_gives_back_what_waits_and_finishes_what_works(
    plane: ControlPlane, heard: Heard, launcher: Launcher, tmp_path: Path
) -> None:
    async with serving(heard) as url, program(url, tmp_path) as agent:
        await eventually(lambda: launcher.book.instances, 20)
        runs = [await launcher.start(name, name) for name in ("asks", "asks_in_a_thread", "works")]
        await plane.asked("x")
        await plane.asked("y")
        await agent.started()
        heard.told.clear()
        agent.terminate()
        await eventually(lambda: "hand-back" in heard.words())
        assert heard.words()[0] == "heartbeat draining"
        assert agent.cleaned_up() == ["x", "y"]
        agent.may_finish()
        await agent.ended()
    assert [(run.status, run.instance_id) for run in runs[:2]] == [("waiting", None)] * 2
    assert (runs[2].status, runs[2].result) == ("succeeded", "finished")
    words = [word for word in heard.words() if word != "heartbeat draining"]
    assert words == ["hand-back", "status", "shutdown"]
    ((_, body),) = [each for each in heard.told if each[0] == "hand-back"]
    assert sorted(each["execution_id"] for each in body["executions"]) == ["asks", "asks_in_a_thread"]
    assert {each["fence"] for each in body["executions"]} == {1}


async def test_a_run_that_comes_to_a_pause_meanwhile_asks_and_is_given_back(
    plane: ControlPlane, heard: Heard, launcher: Launcher, tmp_path: Path
) -> None:
    async with serving(heard) as url, program(url, tmp_path) as agent:
        await eventually(lambda: launcher.book.instances, 20)
        run = await launcher.start("run-1", "works", then="later")
        await agent.started()
        heard.told.clear()
        agent.terminate()
        await eventually(lambda: "heartbeat draining" in heard.words())
        agent.may_finish()
        await agent.ended()
    assert (run.status, run.instance_id) == ("waiting", None)
    assert [each.approval_request_id for each in plane.pending()] == ["later"]
    words = [word for word in heard.words() if word != "heartbeat draining"]
    assert words == ["request-approval", "hand-back", "shutdown"]


@pytest.mark.parametrize("reasoner", ["works", "works_in_a_thread"])
async def test_what_has_not_finished_in_time_is_given_to_others(
    heard: Heard, launcher: Launcher, tmp_path: Path, reasoner: str
) -> None:
    async with serving(heard) as url, program(url, tmp_path, drain_seconds=1) as agent:
        await eventually(lambda: launcher.book.instances, 20)
        run = await launcher.start("run-1", reasoner)
        await agent.started()
        agent.terminate()
        assert 1 <= await agent.ended() < 5
    assert (run.status, run.instance_id) == ("queued", None)
    assert heard.words()[-2:] == ["hand-back", "shutdown"]
    assert "status" not in heard.words()


async def test_hundreds_that_wait_are_given_back_in_a_few_calls(
    plane: ControlPlane, heard: Heard, launcher: Launcher, tmp_path: Path
) -> None:
    async with serving(heard) as url, program(url, tmp_path) as agent:
        await eventually(lambda: launcher.book.instances, 20)
        runs = await asyncio.gather(*(launcher.start(f"run-{n}", "asks", name=f"x{n}") for n in range(150)))
        await eventually(lambda: len(plane.pending()) == 150, 60)
        agent.terminate()
        await agent.ended(20)
    assert {(run.status, run.instance_id) for run in runs} == {("waiting", None)}
    sizes = [len(body["executions"]) for word, body in heard.told if word == "hand-back"]
    assert sum(sizes) == 150
    assert len(sizes) <= 5


async def test_a_call_gives_back_a_thousand_at_most(plane: ControlPlane, heard: Heard) -> None:
    async with serving(heard) as url, listening(Agent("contract-reviewer", "1", url)) as lifetime:
        await eventually(lambda: plane._book.instances)
        for n in range(2500):
            lifetime._node.hand_back(f"run-{n}", 1)
    sizes = [len(body["executions"]) for word, body in heard.told if word == "hand-back"]
    assert sizes == [1000, 1000, 500]


async def test_nothing_is_given_back_before_it_is_known_that_nothing_new_is_taken(
    plane: ControlPlane, launcher: Launcher
) -> None:
    """The control plane would give what it gets back to the same process at once."""
    may_answer = asyncio.Event()

    class Slow:
        async def exchange(self, call: Call[Any]) -> Reply:
            if b"draining" in (call.body or b""):
                await may_answer.wait()
            return await plane.transport.exchange(call)

        async def aclose(self) -> None:
            pass

    agent = Agent("contract-reviewer", "1")
    agent.use_transport(Slow())  # type: ignore[arg-type]

    @agent.reasoner()
    async def asks() -> None:
        await agent.pause("x")

    async with listening(agent) as lifetime:
        await launcher.registered()
        run = await launcher.start("run-1", "asks")
        await plane.asked()
        lifetime.begin_to_end()
        await eventually(lambda: not processing(agent, "run-1"))
        loop = asyncio.get_running_loop()
        since = loop.time()
        await eventually(lambda: loop.time() - since > 0.2)
        assert run.instance_id is not None
        may_answer.set()
        await eventually(lambda: run.instance_id is None)
    assert run.status == "waiting"


async def test_a_run_whose_end_could_not_be_told_in_time_is_given_back(plane: ControlPlane, launcher: Launcher) -> None:
    """Its code has returned, and the control plane does not answer: another process returns the same once more."""
    told = asyncio.Event()

    class Deaf:
        async def exchange(self, call: Call[Any]) -> Reply:
            if call.path.endswith("/status"):
                told.set()
                await asyncio.Event().wait()
            return await plane.transport.exchange(call)

        async def aclose(self) -> None:
            pass

    agent = Agent("contract-reviewer", "1")
    agent.use_transport(Deaf())  # type: ignore[arg-type]

    @agent.reasoner()
    async def works() -> str:
        return "finished"

    async with listening(agent):
        await launcher.registered()
        run = await launcher.start("run-1", "works")
        await told.wait()
    assert [call.rpartition("/")[2] for call in plane.calls if "/nodes/" in call][-2:] == ["hand-back", "shutdown"]
    assert (run.status, run.instance_id) == ("queued", None)


async def test_code_that_swallows_being_handed_back_has_not_succeeded(
    plane: ControlPlane, launcher: Launcher, agent: Agent
) -> None:
    @agent.reasoner()
    async def stubborn() -> str:
        try:
            return (await agent.pause("x")).feedback
        except BaseException:
            return "nobody answered"

    @agent.reasoner()
    async def clumsy() -> None:
        try:
            await agent.pause("y")
        finally:
            raise RuntimeError("while cleaning up")

    async with listening(agent):
        await launcher.registered()
        runs = [await launcher.start("run-1", "stubborn"), await launcher.start("run-2", "clumsy")]
        await plane.asked("x")
        await plane.asked("y")
    assert [(run.status, run.instance_id) for run in runs] == [("waiting", None)] * 2
    assert len(plane.pending()) == 2


async def test_a_second_signal_changes_nothing(heard: Heard, launcher: Launcher, tmp_path: Path) -> None:
    async with serving(heard) as url, program(url, tmp_path) as agent:
        await eventually(lambda: launcher.book.instances, 20)
        run = await launcher.start("run-1", "works")
        await agent.started()
        agent.terminate()
        await eventually(lambda: "heartbeat draining" in heard.words())
        agent.terminate()
        agent.may_finish()
        await agent.ended()
    assert (run.status, run.result) == ("succeeded", "finished")
    assert heard.words()[-1] == "shutdown"


async def test_a_control_plane_that_is_away_holds_it_up_for_seconds_only(
    plane: ControlPlane, heard: Heard, launcher: Launcher, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with program(f"http://127.0.0.1:{unused_tcp_port}", tmp_path, drain_seconds=1) as agent:
        async with serving(heard, unused_tcp_port):
            await eventually(lambda: launcher.book.instances, 20)
            await launcher.start("run-1", "asks")
            await launcher.start("run-2", "works")
            await plane.asked("x")
            await agent.started()
        agent.may_finish()
        agent.terminate()
        assert await agent.ended(15) < 9
    # It could say nothing; its lease passes, and both go on elsewhere.
    assert [launcher.book.executions[name].status for name in ("run-1", "run-2")] == ["waiting", "running"]


async def test_it_stops_soon_when_it_was_never_registered(
    tmp_path: Path, unused_tcp_port_factory: Callable[[], int]
) -> None:
    away, port = unused_tcp_port_factory(), unused_tcp_port_factory()
    async with (
        program(f"http://127.0.0.1:{away}", tmp_path, port=port) as agent,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):
        async with asyncio.timeout(20):
            while not await answers(client):  # noqa: ASYNC110  # another process
                await asyncio.sleep(0.02)
        agent.terminate()
        assert await agent.ended() < 8


async def answers(client: httpx.AsyncClient) -> bool:
    try:
        return (await client.get("/health")).status_code == 200
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("hosted", [True, False])
async def test_where_it_is_mounted_the_end_of_the_application_is_its_signal(
    plane: ControlPlane, launcher: Launcher, unused_tcp_port: int, *, hosted: bool
) -> None:
    path = "/agent" if hosted else ""
    agent = plane.connect(Agent("contract-reviewer", "1", callback_url=f"http://127.0.0.1:{unused_tcp_port}{path}"))
    hand_back = "POST /api/v1/nodes/contract-reviewer/hand-back"

    @agent.reasoner()
    async def asks() -> None:
        await agent.pause("x")

    @agent.reasoner()
    async def works() -> str:
        await eventually(lambda: hand_back in plane.calls, 20)
        return "finished"

    # A host does not tell what is mounted in it when it starts and stops.
    mounted = asgi("/agent", is_mount=True, copy_scope=True)(agent.asgi)
    app = Litestar([mounted], lifespan=[agent.lifespan]) if hosted else agent.asgi
    async with serving(app, unused_tcp_port):
        await launcher.registered()
        waiting, working = await launcher.start("run-1", "asks"), await launcher.start("run-2", "works")
        await plane.asked()
    assert (waiting.status, waiting.instance_id) == ("waiting", None)
    assert (working.status, working.result) == ("succeeded", "finished")
    assert plane.calls[-1] == "POST /api/v1/nodes/contract-reviewer/shutdown"
