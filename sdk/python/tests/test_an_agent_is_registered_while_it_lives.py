import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from holdshort import Agent
from holdshort._core import Call, Reply
from holdshort.testing import ControlPlane

from sdk.python.tests.dispatching import Launcher, launching, listening
from sdk.python.tests.support import eventually, serving

REGISTER = "POST /api/v1/nodes/register"
BEAT = "POST /api/v1/nodes/contract-reviewer/heartbeat"
SHUTDOWN = "POST /api/v1/nodes/contract-reviewer/shutdown"


class Clause(msgspec.Struct):
    number: int


class Opaque:
    """No JSON Schema describes it."""


@pytest.fixture
async def launcher(plane: ControlPlane) -> AsyncIterator[Launcher]:
    plane._book.lease_seconds = 0.3
    async with launching(plane) as made:
        yield made


def logged(caplog: pytest.LogCaptureFixture, level: int = logging.WARNING) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "holdshort" and each.levelno >= level]


async def test_it_says_what_it_serves_and_where(plane: ControlPlane, launcher: Launcher) -> None:
    agent = plane.connect(Agent("contract-reviewer", "1.2.3", max_concurrent=4))

    @agent.reasoner(timeout_seconds=60, resume="at_start")
    async def review(clause: Clause, limit: int = 3) -> None: ...

    @agent.reasoner()
    async def odd(thing: Opaque | None = None) -> None: ...

    async with listening(agent):
        await launcher.registered()
        (instance,) = launcher.book.instances.values()
        told = instance.told
        assert (told.node_id, told.version, told.max_concurrent) == ("contract-reviewer", "1.2.3", 4)
        assert told.features == {"replay": True, "fence": True}
        assert told.lease_seconds == 15
        assert len(told.instance_id) == 32
        async with httpx.AsyncClient(base_url=told.base_url) as client:
            assert (await client.get("/health")).status_code == 200
        first, second = told.reasoners
        assert (first["name"], first["timeout_seconds"], first["resume"]) == ("review", 60, "at_start")
        schema = first["input_schema"]
        properties = schema["$defs"][schema["$ref"].rpartition("/")[2]]
        assert properties["required"] == ["clause"]
        assert set(properties["properties"]) == {"clause", "limit"}
        assert second == {"name": "odd", "resume": "when_decided"}
    assert instance.status == "gone"
    assert plane.calls[-1] == SHUTDOWN


async def test_the_address_that_was_given_counts(
    plane: ControlPlane, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDSHORT_CALLBACK_URL", "https://agents.example.com/reviewer/")
    agent = plane.connect(Agent("contract-reviewer", "1"))
    async with listening(agent):
        await launcher.registered()
        (instance,) = launcher.book.instances.values()
        assert instance.told.base_url == "https://agents.example.com/reviewer"


@pytest.mark.parametrize(
    ("control_plane", "host", "registered"),
    [
        ("http://localhost:8080", "0.0.0.0", True),
        ("http://127.0.0.1:8080", "127.0.0.1", True),
        ("https://holdshort.example.com", "127.0.0.1", False),
        ("https://holdshort.example.com", "0.0.0.0", False),
    ],
)
async def test_an_address_that_means_another_machine_elsewhere_is_not_given_away(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture, control_plane: str, host: str, *, registered: bool
) -> None:
    agent = plane.connect(Agent("contract-reviewer", "1", control_plane))
    async with listening(agent, host=host):
        if registered:
            await eventually(lambda: agent.asgi.lifetime.registered)
            (instance,) = plane._book.instances.values()
            async with httpx.AsyncClient(base_url=instance.told.base_url) as client:
                assert (await client.get("/health")).json()["registered"]
    assert bool(plane.calls) == registered
    assert any("give a callback_url" in each for each in logged(caplog)) != registered


async def test_with_nothing_to_end_it_is_gone_at_once(
    plane: ControlPlane, launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher.book.lease_seconds = 3000.0
    monkeypatch.setattr("holdshort._node._LAST_S", 1000.0)
    agent = plane.connect(Agent("contract-reviewer", "1", callback_url="http://127.0.0.1:1"))
    agent.asgi.begin()
    await launcher.registered()
    await agent.asgi.end()
    assert plane.calls[-1] == SHUTDOWN


async def test_each_process_is_an_instance_of_its_own(plane: ControlPlane, launcher: Launcher) -> None:
    agents = [plane.connect(Agent("contract-reviewer", "1")) for _ in range(2)]
    async with listening(agents[0]), listening(agents[1]):
        await launcher.registered(2)
    assert len(launcher.book.instances) == 2
    async with listening(agents[0]):
        await launcher.registered(1)
    assert len(launcher.book.instances) == 3


async def test_a_reasoner_that_comes_later_is_registered_too(launcher: Launcher, agent: Agent) -> None:
    async with listening(agent):
        await launcher.registered()

        @agent.reasoner()
        async def late() -> None: ...

        (known,) = launcher.book.instances
        await eventually(lambda: [each["name"] for each in launcher.book.instances[known].told.reasoners] == ["late"])


async def test_it_gives_signs_of_life_as_often_as_the_control_plane_asks(
    plane: ControlPlane, launcher: Launcher, agent: Agent
) -> None:
    loop = asyncio.get_running_loop()
    async with listening(agent):
        await launcher.registered()
        began = loop.time()
        await eventually(lambda: plane.calls.count(BEAT) >= 5)
        assert 5 * 0.08 <= loop.time() - began <= 5 * 0.1 + 1
    assert plane.calls.count(REGISTER) == 1


async def test_it_registers_again_when_it_is_not_known(plane: ControlPlane, launcher: Launcher, agent: Agent) -> None:
    async with listening(agent):
        await launcher.registered()
        (instance,) = launcher.book.instances
        launcher.book.instances.clear()
        await launcher.registered()
        assert list(launcher.book.instances) == [instance]


async def test_a_control_plane_that_is_away_never_stops_it_and_is_logged_once(
    plane: ControlPlane, launcher: Launcher, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    tried = 0

    class Counting:
        async def exchange(self, call: Call[Any]) -> Reply:
            nonlocal tried
            tried += 1
            return await plane.transport.exchange(call)

        async def aclose(self) -> None:
            pass

    agent.use_transport(Counting())  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO, "holdshort"), plane.away():
        async with listening(agent):
            await eventually(lambda: tried > 4)
            assert [("could not register" in each) for each in logged(caplog)] == [True]
            await back(plane, launcher)
            tried = 0
            plane._away = True
            await eventually(lambda: tried > 2)
            assert [("sign of life" in each) for each in logged(caplog)[1:]] == [True]
            await back(plane, launcher)
    assert logged(caplog, logging.INFO).count("the control plane is back; contract-reviewer is registered") == 2
    assert len(logged(caplog)) == 2


async def back(plane: ControlPlane, launcher: Launcher) -> None:
    plane._away = False
    beats = plane.calls.count(BEAT)
    await launcher.registered()
    await eventually(lambda: plane.calls.count(BEAT) > beats)


async def test_a_refused_registration_is_tried_on_while_it_serves(caplog: pytest.LogCaptureFixture) -> None:
    tried = 0

    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        nonlocal tried
        if scope["type"] == "http":
            tried += 1
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b'{"error": "missing_key", "message": "give a key"}'})

    async with serving(refuses) as url, listening(Agent("contract-reviewer", "1", url)):
        await eventually(lambda: tried > 3)
    assert "refuses that this agent should register" in logged(caplog, logging.ERROR)[0]
    assert "give a key" in logged(caplog)[0]
    assert len(logged(caplog)) == 2
    assert "was not told that this instance stops" in logged(caplog)[1]


async def test_without_an_address_it_registers_once_there_is_one(
    plane: ControlPlane, launcher: Launcher, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "holdshort"):
        async with serving(agent.asgi) as url:
            await eventually(lambda: logged(caplog, logging.DEBUG) != [])
            assert logged(caplog) == []
            assert plane.calls == []
            agent.reachable_at(url)
            await launcher.registered()
            agent.reachable_at("http://elsewhere.test")
            (instance,) = launcher.book.instances.values()
            assert instance.told.base_url == url
    assert plane.calls[-1] == SHUTDOWN


async def test_mounted_where_its_address_is_known(
    plane: ControlPlane, launcher: Launcher, unused_tcp_port: int
) -> None:
    agent = plane.connect(
        Agent("contract-reviewer", "1", callback_url=f"http://127.0.0.1:{unused_tcp_port}", callback="pull")
    )

    @agent.reasoner()
    async def hello() -> str:
        return "hello"

    async with serving(agent.asgi, unused_tcp_port):
        await launcher.registered()
        await launcher.start("run-1", "hello")
        assert (await launcher.ended("run-1")).result == "hello"
    assert plane.calls[-1] == SHUTDOWN


async def test_a_crowd_of_calls_does_not_make_its_signs_of_life_late(launcher: Launcher) -> None:
    """Every call but those of nodes is answered never: a heartbeat does not queue behind them."""
    beats = 0

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        nonlocal beats
        if scope["type"] != "http":
            return
        if "/nodes/" not in scope["path"]:
            await gone(receive)
            return
        beats += 1
        body = msgspec.json.encode({"lease_seconds": 0.3, "heartbeat_seconds": 0.1})
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body})

    async with serving(slow) as url:
        agent = Agent("contract-reviewer", "1", url)
        async with listening(agent):
            calls = [asyncio.create_task(ignoring(agent, f"run-{n}")) for n in range(100)]
            await eventually(lambda: beats > 5)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


async def ignoring(agent: Agent, execution_id: str) -> None:
    async with agent.execution(execution_id):
        pass


async def gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
