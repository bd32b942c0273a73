"""A key that is refused is a typed error that says what to do; nothing is approved by it, nobody tries in silence."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest
from holdshort import AccessLost, Agent, AsyncClient, Client, KeyRefused, NodeOwned, NotAuthorised, WrongScope
from holdshort import _shared_wait as shared_wait
from holdshort._core import Call, Reply
from holdshort._refusals import refusal
from holdshort.testing import ControlPlane

from sdk.python.tests.dispatching import launching, listening
from sdk.python.tests.support import eventually, serving

KEY = "hs_0123456789ab_canary0canary0canary0canary"
SAID = {
    "not_authenticated": (401, "This takes an API key; send it as X-API-Key."),
    "invalid_key": (401, "This is no key of ours, or it was revoked or is past its time."),
    "not_allowed": (403, "This takes a key of scope agent; use another key."),
    "node_owned": (403, "The node belongs to another key."),
}
KINDS: dict[str, type[NotAuthorised]] = {
    "not_authenticated": KeyRefused,
    "invalid_key": KeyRefused,
    "not_allowed": WrongScope,
    "node_owned": NodeOwned,
}


class Gatekeeper:
    """The testing control plane behind a door that refuses with a code, while it has one.

    Args:
        plane: behind it.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self.code: str | None = None
        self.only = ""
        self.refused = 0

    async def exchange(self, call: Call[Any]) -> Reply:
        if self.code is None or self.only not in call.path:
            return await self._plane.transport.exchange(call)
        self.refused += 1
        status, said = SAID[self.code]
        return Reply(status, {}, msgspec.json.encode({"error": self.code, "message": said}))

    async def aclose(self) -> None:
        pass


@pytest.fixture
def gatekeeper(plane: ControlPlane) -> Gatekeeper:
    return Gatekeeper(plane)


@pytest.fixture
def agent(gatekeeper: Gatekeeper) -> Agent:
    made = Agent("contract-reviewer", "1")
    made.use_transport(gatekeeper)  # type: ignore[arg-type]
    return made


@pytest.fixture
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_wait, "_REFUSED_S", 0.01)


@pytest.fixture
async def refusing() -> AsyncIterator[str]:
    """A real server that refuses every key."""

    async def refuses(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            body = msgspec.json.encode({"error": "invalid_key", "message": SAID["invalid_key"][1]})
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": body})

    async with serving(refuses) as url:
        yield url


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "holdshort" and each.levelno >= logging.ERROR]


@pytest.mark.parametrize("code", sorted(SAID))
def test_each_refusal_has_a_type_and_says_what_to_do(code: str) -> None:
    status, said = SAID[code]
    error = refusal(status, {"error": code, "message": said}, "req-1")
    assert type(error) is KINDS[code]
    assert isinstance(error, NotAuthorised)
    assert error.code == code
    assert error.message.startswith(said)
    remedy = "holdshort nodes move" if code == "node_owned" else "HOLDSHORT_API_KEY"
    assert remedy in error.message


async def test_both_clients_raise_it_at_once_over_the_network(refusing: str) -> None:
    async with AsyncClient(refusing, KEY) as client:
        with pytest.raises(KeyRefused):
            await client.get_execution("run-1")

    def blocking() -> None:
        with Client(refusing, KEY) as client, pytest.raises(KeyRefused):
            client.get_execution("run-1")

    await asyncio.to_thread(blocking)


@pytest.mark.parametrize("code", sorted(SAID))
async def test_a_pause_whose_question_is_refused_raises_and_the_action_is_not_done(
    agent: Agent, gatekeeper: Gatekeeper, code: str
) -> None:
    done = []

    async def run() -> None:
        async with agent.execution("run-1"):
            gatekeeper.code = code
            done.append(await agent.pause("q"))

    with pytest.raises(KINDS[code]):
        await run()
    assert done == []


@pytest.mark.usefixtures("quickly")
@pytest.mark.parametrize("code", sorted(SAID))
async def test_a_key_that_ends_during_the_wait_ends_the_wait_without_an_answer(
    plane: ControlPlane, agent: Agent, gatekeeper: Gatekeeper, caplog: pytest.LogCaptureFixture, code: str
) -> None:
    swallowed = []

    async def run() -> None:
        async with agent.execution("run-1"):
            try:
                await agent.pause("q")
            except Exception as error:  # what must not be able to hide it
                swallowed.append(error)

    running = asyncio.create_task(run())
    approval = await plane.asked()
    gatekeeper.code = code
    agent.sessions.enter().waits.add("wakes-the-wait")
    with pytest.raises(AccessLost, match="nothing was decided here") as lost:
        await running
    await agent.sessions.leave()
    assert SAID[code][1] in lost.value.message
    assert swallowed == []
    assert len(errors(caplog)) == 1
    gatekeeper.code = None
    assert plane.pending() == [approval]
    plane.decide(approval, "approved")
    async with agent.execution("run-1"):
        assert (await agent.pause("q")).approved


@pytest.mark.usefixtures("quickly")
async def test_one_refusal_alone_ends_no_wait(plane: ControlPlane, agent: Agent, gatekeeper: Gatekeeper) -> None:
    async with agent.execution("run-1"):
        pausing = asyncio.create_task(agent.pause("q"))
        await plane.asked()
        gatekeeper.code = "invalid_key"
        agent.sessions.enter().waits.add("wakes-the-wait")
        await eventually(lambda: gatekeeper.refused == 1)
        gatekeeper.code = None
        plane.decide("q", "approved")
        assert (await pausing).approved
        await agent.sessions.leave()


async def test_a_refused_registration_is_said_once_and_tried_until_it_is_taken(
    plane: ControlPlane, agent: Agent, gatekeeper: Gatekeeper, caplog: pytest.LogCaptureFixture
) -> None:
    gatekeeper.code = "node_owned"
    with caplog.at_level(logging.INFO, "holdshort"):
        async with listening(agent), launching(plane) as launcher:
            await eventually(lambda: gatekeeper.refused > 4)
            (said,) = errors(caplog)
            assert "register" in said
            assert "The node belongs to another key." in said
            async with httpx.AsyncClient(base_url=agent.base_url or "") as client:
                assert not (await client.get("/health")).json()["registered"]
            gatekeeper.code = None
            await launcher.registered()
            await eventually(lambda: "is back" in caplog.text)
    assert len(errors(caplog)) == 1


async def test_a_refusal_is_said_also_where_the_control_plane_was_away_before(
    plane: ControlPlane, agent: Agent, gatekeeper: Gatekeeper, caplog: pytest.LogCaptureFixture
) -> None:
    with plane.away():
        async with listening(agent):
            await eventually(lambda: "could not register" in caplog.text)
            assert errors(caplog) == []
            gatekeeper.code = "invalid_key"
            await eventually(lambda: errors(caplog))
            assert "refuses that this agent should register" in errors(caplog)[0]


async def test_a_caller_is_not_told_that_its_own_key_is_wrong(agent: Agent, gatekeeper: Gatekeeper) -> None:
    @agent.reasoner()
    async def work() -> str:
        return "done"

    gatekeeper.code = "invalid_key"
    async with serving(agent.asgi) as url, httpx.AsyncClient(base_url=url) as client:
        answer = await client.post("/reasoners/work", json={})
    assert (answer.status_code, answer.json()["error"]) == (503, "invalid_key")


@pytest.mark.parametrize("bad", ["with space", "line\nbreak", "schlüssel", "tab\tbed", "\x00"])
def test_a_key_that_no_header_can_carry_is_refused_unseen_and_unsent(bad: str) -> None:
    for make in (AsyncClient, Client):
        with pytest.raises(KeyRefused) as refused:
            make(api_key=f"{KEY}{bad}{KEY}")
        assert KEY not in str(refused.value)


def test_space_around_a_key_is_none_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDSHORT_API_KEY", f"{KEY}\n")
    assert Client()._headers["authorization"] == f"Bearer {KEY}"
    monkeypatch.setenv("HOLDSHORT_API_KEY", " \n")
    assert "authorization" not in Client()._headers
