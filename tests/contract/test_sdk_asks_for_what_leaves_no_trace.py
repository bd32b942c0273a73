import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from holdshort import (
    Agent,
    AsyncClient,
    Client,
    DuplicateRequest,
    FeedbackCancelled,
    FeedbackExpired,
    FeedbackQuestion,
    RequestIdUsed,
)
from holdshort import _core as core
from holdshort._transport import HttpxAsyncTransport

from tests.contract import planes
from tests.contract.planes import Plane, questioned
from tests.postgres import Database

Name = Callable[[str], str]


@pytest.fixture
def agent(plane: Plane, fresh: Name) -> Agent:
    return Agent(fresh("node"), "1", control_plane_url=plane.url)


async def gone(client: AsyncClient, unique_id: str) -> None:
    async def look() -> list[FeedbackQuestion]:
        return [each for each in (await client.pending_feedback()).requests if each.unique_id == unique_id]

    await planes.until(look, lambda found: not found)


@pytest.mark.parametrize(
    ("asked", "said", "answer"),
    [
        ({"kind": "secret"}, "482913", "482913"),
        ({"options": ["Ship it", "Hold"]}, "hold", "Hold"),
        ({"kind": "yes_no", "yes_label": "Send", "no_label": "Keep"}, "Send", "yes"),
    ],
)
async def test_the_bare_answer_comes_back_and_is_gone(
    agent: Agent, client: AsyncClient, fresh: Name, asked: dict[str, Any], said: str, answer: str
):
    async with agent.execution(fresh("run")):
        waiting = asyncio.create_task(agent.human_feedback("Which?", fresh("q"), **asked))
        question = await questioned(client, fresh("q"))
        assert question.message_for_user == "Which?"
        await client.submit_feedback(fresh("q"), said)
        assert await waiting == answer
    with pytest.raises(RequestIdUsed):
        await agent.human_feedback("Which?", fresh("q"), **asked)


async def test_input_says_its_kind(agent: Agent, client: AsyncClient, fresh: Name):
    waiting = asyncio.create_task(agent.human_input("Go on?", "yes_no", unique_id=fresh("q")))
    await questioned(client, fresh("q"))
    await client.submit_feedback(fresh("q"), "reject")
    given = await waiting
    assert (given.kind, given.answer, given.yes, given.no) == ("yes_no", "no", False, True)


async def test_nobodys_answer_is_none(agent: Agent, fresh: Name):
    with pytest.raises(FeedbackExpired):
        await agent.human_feedback("Delete it all?", fresh("q"), 5, kind="yes_no")


async def test_a_question_goes_with_its_caller(agent: Agent, client: AsyncClient, fresh: Name):
    waiting = asyncio.create_task(agent.human_feedback("Code?", fresh("q")))
    await questioned(client, fresh("q"))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(FeedbackCancelled):
        await client.submit_feedback(fresh("q"), "482913")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await agent.human_feedback("Code?", fresh("q2"))
    await gone(client, fresh("q2"))


@pytest.mark.parametrize("plain", [False, True])
async def test_a_question_goes_with_its_run(agent: Agent, client: AsyncClient, fresh: Name, plain: bool):
    @agent.reasoner()
    async def waits() -> str:
        return await agent.human_feedback("Code?", fresh("q"))

    @agent.reasoner()
    def waits_in_a_thread() -> str:
        return agent.human_feedback_sync("Code?", fresh("q"))

    reasoner = "waits_in_a_thread" if plain else "waits"
    async with planes.listening(agent):
        await planes.registered(client, agent.node_id, reasoner)
        run = await client.execute_async(agent.node_id, reasoner)
        await questioned(client, fresh("q"))
        await client.cancel_execution(run.execution_id, reason="enough")
        await gone(client, fresh("q"))
        with pytest.raises(FeedbackCancelled):
            await client.submit_feedback(fresh("q"), "482913")


async def test_another_call_takes_nothing_from_the_one_that_waits(agent: Agent, client: AsyncClient, fresh: Name):
    waiting = asyncio.create_task(agent.human_feedback("Code?", fresh("q")))
    await questioned(client, fresh("q"))
    with pytest.raises(DuplicateRequest):
        await agent.human_feedback("Code?", fresh("q"))
    await client.submit_feedback(fresh("q"), "482913")
    assert await waiting == "482913"


async def test_threads_and_scripts_ask_too(plane: Plane, client: AsyncClient, fresh: Name):
    answers: list[str] = []
    with Client(plane.url) as blocking:
        thread = threading.Thread(target=lambda: answers.append(blocking.human_feedback("Code?", fresh("q"))))
        thread.start()
        await questioned(client, fresh("q"))
        await client.submit_feedback(fresh("q"), "482913")
        await asyncio.to_thread(thread.join, planes.PATIENCE_SECONDS)
    assert answers == ["482913"]


@pytest.mark.proof  # where it takes more than ten seconds to start again, nobody has waited for fifteen
async def test_a_control_plane_killed_while_a_question_waits_is_not_noticed(mortal_plane: Plane):
    agent = Agent("node", "1", control_plane_url=mortal_plane.url)
    waiting = asyncio.create_task(agent.human_feedback("Code?", "otp-1"))
    async with AsyncClient(mortal_plane.url) as client:
        await questioned(client, "otp-1")
        mortal_plane.kill()
        await asyncio.to_thread(mortal_plane.start)
        await client.submit_feedback("otp-1", "482913")
        assert await waiting == "482913"


class Balanced:
    """A transport that a balancer stands before: each call goes to the next of the replicas."""

    def __init__(self, urls: list[str]) -> None:
        self._replicas = [HttpxAsyncTransport(url, {}) for url in urls]
        self.calls: list[tuple[int, str]] = []

    async def exchange(self, call: core.Call[Any]) -> core.Reply:
        which = len(self.calls) % len(self._replicas)
        self.calls.append((which, call.method))
        return await self._replicas[which].exchange(call)

    async def aclose(self) -> None:
        for each in self._replicas:
            await each.aclose()


@pytest.fixture
def replicas(database: Database) -> Iterator[list[Plane]]:
    """Two control planes on one database."""
    with planes.serving(database) as one, planes.serving(database) as other:
        yield [one, other]


@pytest.fixture
async def balanced(replicas: list[Plane]) -> AsyncIterator[Balanced]:
    made = Balanced([each.url for each in replicas])
    yield made
    await made.aclose()


async def test_replicas_and_their_restarts_are_all_the_same_to_a_question(replicas: list[Plane], balanced: Balanced):
    async with AsyncClient(replicas[0].url) as one, AsyncClient(replicas[1].url) as other:
        asker = AsyncClient(transport=balanced)  # type: ignore[arg-type]  # it is never asked for a stream
        waiting = asyncio.create_task(asker.human_feedback("Code?", "otp-1"))
        # Asked at the one and waited for at the other; that one dies, and the wait goes on at the first, and back.
        await questioned(one, "otp-1")
        await planes.until(lambda: planes.value(balanced.calls), lambda calls: calls[-1] == (1, "GET"))
        await questioned(other, "otp-1")
        for dies, lives in ((1, 0), (0, 1)):
            replicas[dies].kill()
            await planes.until(lambda: planes.value(balanced.calls), lambda calls, to=lives: calls[-1] == (to, "GET"))
            await asyncio.to_thread(replicas[dies].start)
        await one.submit_feedback("otp-1", "482913")
        assert await waiting == "482913"
    assert [method for _, method in balanced.calls[:3]] == ["POST", "GET", "GET"]
