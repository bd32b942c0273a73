import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from holdshort import (
    Agent,
    AlreadyAnswered,
    AnswerTaken,
    AsyncClient,
    Client,
    ConnectionFailed,
    DuplicateRequest,
    ExecutionCancelled,
    FeedbackCancelled,
    FeedbackExpired,
    HumanInput,
    InvalidAnswer,
    InvalidField,
    NoExecution,
    NotFound,
    RequestIdUsed,
    UnreadableAnswer,
    WrongScope,
    unique_id,
)
from holdshort import _core as core
from holdshort import _feedback as feedback
from holdshort import _feedback_routes as routes
from holdshort._choices import checked_choices
from holdshort._seals import Lock
from holdshort.testing import ControlPlane

from sdk.python.tests.support import eventually

CANARY = "canary-482913"


@pytest.mark.parametrize(
    ("asked", "said", "answer"),
    [
        ({}, " 482913\n", " 482913\n"),
        ({"kind": "secret"}, CANARY, CANARY),
        ({"options": ["Ship it", "Hold"]}, "ship it", "Ship it"),
        ({"kind": "yes_no"}, "TRUE", "yes"),
        ({"kind": "yes_no", "yes_label": "Send", "no_label": "Keep"}, "keep", "no"),
    ],
)
async def test_the_bare_answer_comes_back(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], said: str, answer: str
) -> None:
    waiting = asyncio.create_task(agent.human_feedback("Which?", "q-1", **asked))
    plane.answer_feedback(await plane.asked_feedback("q-1"), said)
    assert await waiting == answer


async def test_the_answer_is_read_once_and_nothing_of_it_is_kept(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1") as run:
        waiting = asyncio.create_task(agent.human_feedback("Code?", "otp-1", kind="secret"))
        question = await plane.asked_feedback()
        assert plane._book.questions["otp-1"].told.execution_id == run.execution_id
        plane.answer_feedback(question, CANARY)
        assert await waiting == CANARY
    assert plane.steps("run-1") == plane.notes("run-1") == []
    assert CANARY not in repr((plane._book.events, plane._book.questions, plane._book.executions))
    async with AsyncClient(transport=plane.transport) as client:
        with pytest.raises(AnswerTaken):
            await client.feedback_answer("otp-1")
        with pytest.raises(RequestIdUsed):
            await agent.human_feedback("Code?", "otp-1")


async def test_nobodys_answer_is_an_error_and_no_answer(plane: ControlPlane, agent: Agent) -> None:
    waiting = asyncio.create_task(agent.human_feedback("Delete it all?", "q-1", kind="yes_no", timeout_seconds=60))
    await plane.asked_feedback()
    plane.advance(seconds=59)
    assert plane.pending_feedback()
    plane.advance(seconds=1)
    with pytest.raises(FeedbackExpired):
        await waiting
    with pytest.raises(LookupError):
        plane.answer_feedback("q-1", "yes")


@pytest.mark.parametrize("end", ["cancelled", "timeout", "operator"])
async def test_a_question_goes_with_its_caller(plane: ControlPlane, agent: Agent, end: str) -> None:
    async def ask() -> str:
        async with agent.execution("run-1"), asyncio.timeout(0.2 if end == "timeout" else None):
            return await agent.human_feedback("Code?", "otp-1")

    asking = asyncio.create_task(ask())
    await plane.asked_feedback()
    if end == "cancelled":
        asking.cancel()
    if end == "operator":
        # A run that the program starts itself hears of its end when it next asks; the caller takes its question back.
        plane.cancel("run-1")
        asking.cancel()
    with pytest.raises((asyncio.CancelledError, TimeoutError, ExecutionCancelled)):
        await asking
    assert plane._book.questions["otp-1"].status == "cancelled"
    assert plane.pending_feedback() == []


async def test_a_withdrawn_question_says_so(plane: ControlPlane, agent: Agent) -> None:
    waiting = asyncio.create_task(agent.human_feedback("Code?", "otp-1"))
    await plane.asked_feedback()
    async with AsyncClient(transport=plane.transport) as client:
        await client.end_feedback("otp-1")
        with pytest.raises(FeedbackCancelled):
            await waiting
        with pytest.raises(FeedbackCancelled):
            await client.submit_feedback("otp-1", "482913")


async def test_another_call_under_an_open_id_takes_nothing_from_the_first(plane: ControlPlane, agent: Agent) -> None:
    waiting = asyncio.create_task(agent.human_feedback("Code?", "otp-1"))
    await plane.asked_feedback()
    with pytest.raises(DuplicateRequest):
        await agent.human_feedback("Code?", "otp-1")
    plane.answer_feedback("otp-1", "482913")
    assert await waiting == "482913"


async def test_an_outage_is_not_noticed(plane: ControlPlane, agent: Agent) -> None:
    waiting = asyncio.create_task(agent.human_feedback("Code?", "otp-1"))
    await plane.asked_feedback()
    with plane.away():
        plane.answer_feedback("otp-1", "482913")
    assert await waiting == "482913"


class Between:
    """Does something to each call for an answer before it is answered."""

    def __init__(self, plane: ControlPlane, *dooms: Callable[[], core.Reply | None]) -> None:
        self._plane = plane
        self._dooms = list(dooms)

    async def exchange(self, call: core.Call[Any]) -> core.Reply:
        if call.path.endswith("/answer") and self._dooms and (reply := self._dooms.pop(0)()):
            return reply
        return await self._plane.transport.exchange(call)

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_control_plane_that_lost_the_question_is_asked_again_once(plane: ControlPlane) -> None:
    lose = plane._book.questions.clear
    async with AsyncClient(transport=Between(plane, lose)) as client:  # type: ignore[arg-type]
        waiting = asyncio.create_task(client.human_feedback("Code?", "otp-1"))
        await eventually(lambda: plane.calls.count("POST /api/v1/human-feedback") == 2)
        plane.answer_feedback("otp-1", "482913")
        assert await waiting == "482913"
    async with AsyncClient(transport=Between(plane, lose, lose)) as client:  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await client.human_feedback("Code?", "otp-2")


async def test_an_answer_that_was_quicker_than_a_lost_reply_is_had(plane: ControlPlane) -> None:
    class Losing(Between):
        """Loses the reply to the first asking, and a person answers before the second."""

        async def exchange(self, call: core.Call[Any]) -> core.Reply:
            reply = await super().exchange(call)
            if call.path.endswith("/human-feedback") and (open_ := plane.pending_feedback()):
                plane.answer_feedback(open_[0], "482913")
                raise core.Unreachable("lost")
            return reply

    async with AsyncClient(transport=Losing(plane)) as client:  # type: ignore[arg-type]
        assert await client.human_feedback("Code?", "otp-1") == "482913"
        assert plane._book.questions["otp-1"].sealed is None


async def test_an_answer_to_another_key_is_not_taken_for_ones_own(plane: ControlPlane, agent: Agent) -> None:
    async with AsyncClient(transport=plane.transport) as client:
        await client.ask_feedback("otp-1", "Code?", Lock().public_key)
        plane.answer_feedback("otp-1", "482913")
        with pytest.raises(RequestIdUsed):
            await agent.human_feedback("Code?", "otp-1")
        assert (await client.feedback_answer("otp-1")).outcome == "answered"


async def test_a_control_plane_that_is_never_there_is_said_so_in_the_questions_time(plane: ControlPlane) -> None:
    with plane.away(), pytest.raises(ConnectionFailed):
        await AsyncClient(transport=plane.transport, patience=0.1).human_feedback("Code?", "otp-1")


def test_how_long_a_call_is_tried() -> None:
    asked = feedback.Asked(unique_id="q", message_for_user="m", timeout_seconds=60, choices=checked_choices(None, None))
    waiting = feedback.Waiting(asked)
    assert (waiting.patience(None, 0), waiting.patience(30, 0)) == (60, 30)
    assert waiting.next(100).path == "/api/v1/human-feedback"
    assert waiting.end() is None
    assert waiting.took(routes.FeedbackAsked(unique_id="q"), 100) == 0
    assert waiting.patience(None, 130) == 45
    assert (waiting.next(130).hold, waiting.next(130).query) == (55, (("wait", "55"),))
    assert waiting.took(routes.FeedbackAnswer(outcome="pending"), 130.25) == 0.75
    with pytest.raises(UnreadableAnswer):
        waiting.took(routes.FeedbackAnswer(outcome="answered", sealed=routes.Sealed("AAAA", "AAAA")), 131)
    assert waiting.took(routes.FeedbackAnswer(outcome="pending"), 175) == 0
    with pytest.raises(FeedbackExpired):
        waiting.took(routes.FeedbackAnswer(outcome="pending"), 175.1)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"unique_id": "a b"}, "unique_id"),
        ({"unique_id": ""}, "unique_id"),
        ({"unique_id": "x" * 129}, "unique_id"),
        ({"message_for_user": " \n"}, "message_for_user"),
        ({"message_for_user": "x" * 4001}, "message_for_user"),
        ({"timeout_seconds": 4.9}, "timeout_seconds"),
        ({"timeout_seconds": 1800.5}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"timeout_seconds": True}, "timeout_seconds"),
        ({"timeout_seconds": "300"}, "timeout_seconds"),
        ({"kind": "perhaps"}, "kind"),
        ({"kind": "multiple_choice"}, "options"),
        ({"kind": "yes_no", "options": ["a"]}, "options"),
        ({"options": []}, "options"),
        ({"options": "yes"}, "options"),
        ({"options": ["a"] * 2}, "options"),
        ({"options": ["a", " a"]}, "options"),
        ({"options": ["a", " "]}, "options"),
        ({"options": ["a\nb"]}, "options"),
        ({"options": ["x" * 201]}, "options"),
        ({"options": [1, 2]}, "options"),
        ({"options": [str(n) for n in range(21)]}, "options"),
        ({"yes_label": "Send"}, "yes_label"),
        ({"kind": "yes_no", "yes_label": "Go", "no_label": "Go"}, "yes_label"),
        ({"kind": "yes_no", "yes_label": "No"}, "yes_label"),
        ({"kind": "yes_no", "no_label": "Approve"}, "yes_label"),
    ],
)
async def test_what_cannot_be_asked_is_refused_before_it_is(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidField) as refused:
        await agent.human_feedback(**{"message_for_user": "m", "unique_id": "q-1", **asked})
    assert [each["field"] for each in refused.value.details["errors"]] == [field]
    assert plane.calls == []


@pytest.mark.parametrize(
    ("asked", "unclear"),
    [
        ({}, ["", " \n"]),
        ({"options": ["Red", "red", "Blue"]}, ["RED", "Redd", "", "Green"]),
        ({"kind": "yes_no"}, ["ok", "sure", "1", "yess", "\u1e8fes", "no yes"]),
        ({"kind": "yes_no", "yes_label": "Send"}, ["sendd", "perhaps"]),
    ],
)
async def test_what_is_unclear_never_becomes_an_answer(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], unclear: list[str]
) -> None:
    waiting = asyncio.create_task(agent.human_feedback("Which?", "q-1", **asked))
    question = await plane.asked_feedback()
    async with AsyncClient(transport=plane.transport) as client:
        for said in unclear:
            with pytest.raises(InvalidAnswer):
                await client.submit_feedback("q-1", said)
            with pytest.raises(ValueError, match="answer"):
                plane.answer_feedback(question, said)
    assert len(plane.pending_feedback()) == 1
    waiting.cancel()


@pytest.mark.parametrize(
    ("asked", "said", "given"),
    [
        ({}, "yes", HumanInput(kind="text", answer="yes")),
        ({"kind": "yes_no"}, "y", HumanInput(kind="yes_no", answer="yes")),
        ({"kind": "yes_no"}, "No", HumanInput(kind="yes_no", answer="no")),
        ({"options": ["yes", "no"]}, "yes", HumanInput(kind="multiple_choice", answer="yes")),
    ],
)
async def test_input_says_which_kind_it_is_and_is_no_truth(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], said: str, given: HumanInput
) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.human_input("What now?", **asked))
        question = await plane.asked_feedback()
        assert question.expires_at is not None
        assert question.created_at is not None
        assert (question.expires_at - question.created_at).total_seconds() == 600
        plane.answer_feedback(question, said)
        assert await waiting == given
    assert (given.yes, given.no) == (
        given.kind == "yes_no" and given.answer == "yes",
        given.kind == "yes_no" and given.answer == "no",
    )
    with pytest.raises(TypeError, match="yes"):
        bool(given)


async def test_input_is_no_way_to_ask_for_a_secret(agent: Agent) -> None:
    with pytest.raises(InvalidField, match="human_feedback"):
        await agent.human_input("Code?", kind="secret")  # type: ignore[arg-type]


async def test_plain_functions_ask_too(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    def work() -> list[Any]:
        given = agent.human_input_sync("Go on?", "yes_no")
        return [given.yes, agent.human_feedback_sync("Code?", unique_id("otp"), kind="secret")]

    call = asyncio.create_task(plane.call(agent, "work"))
    plane.answer_feedback(await plane.asked_feedback(), "yes")
    await eventually(lambda: [each.kind for each in plane.pending_feedback()] == ["secret"])
    plane.answer_feedback(plane.pending_feedback()[0], "482913")
    assert await call == [True, "482913"]
    with pytest.raises(NoExecution):
        agent.human_feedback_sync("Code?", "otp-1")


async def test_waiting_for_a_person_is_no_work(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner(timeout_seconds=0.2)
    async def work() -> str:
        return await agent.human_feedback("Code?", unique_id("otp"))

    call = asyncio.create_task(plane.call(agent, "work"))
    question = await plane.asked_feedback()
    # Longer than the limit: nothing but time tells whether its clock stands still.
    done, _ = await asyncio.wait({call}, timeout=0.4)
    assert not done
    plane.answer_feedback(question, "482913")
    assert await call == "482913"


def test_scripts_and_blocking_clients_ask_too(plane: ControlPlane, agent: Agent) -> None:
    def told(answers: list[str], ask: Callable[[], str]) -> threading.Thread:
        thread = threading.Thread(target=lambda: answers.append(ask()))
        thread.start()
        return thread

    answers: list[str] = []
    with Client(transport=plane.blocking_transport) as client:
        for number, ask in enumerate((client.human_feedback, agent.human_feedback_sync)):
            thread = told(answers, lambda ask=ask, number=number: ask("Code?", f"otp-{number}"))  # type: ignore[misc]
            asyncio.run(_answered(plane, f"otp-{number}"))
            thread.join(5)
        with pytest.raises(RequestIdUsed):
            client.human_feedback("Code?", "otp-0")
        with pytest.raises(AlreadyAnswered):
            client.submit_feedback("otp-0", "again")
    assert answers == ["otp-0!", "otp-1!"]


async def _answered(plane: ControlPlane, named: str) -> None:
    plane.answer_feedback(await plane.asked_feedback(named), f"{named}!")


async def test_an_error_while_it_waits_withdraws_the_question(plane: ControlPlane) -> None:
    refused = core.Reply(403, {}, b'{"error": "not_allowed", "message": "no"}')
    async with AsyncClient(transport=Between(plane, lambda: refused)) as client:  # type: ignore[arg-type]
        with pytest.raises(WrongScope):
            await client.human_feedback("Code?", "otp-1")
    assert plane._book.questions["otp-1"].status == "cancelled"


async def test_nothing_that_is_logged_or_raised_shows_an_answer(
    plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert CANARY not in repr(routes.submit_feedback("otp-1", CANARY))
    async with AsyncClient(transport=plane.transport, patience=0.1) as client:
        waiting = asyncio.create_task(client.human_feedback("Code?", "otp-1"))
        await plane.asked_feedback()
        with plane.away(), pytest.raises(ConnectionFailed) as away:
            await client.submit_feedback("otp-1", CANARY)
        plane.answer_feedback("otp-1", CANARY)
        assert await waiting == CANARY
        with pytest.raises(AlreadyAnswered) as late:
            await client.submit_feedback("otp-1", CANARY)
    assert CANARY not in caplog.text + str(away.value) + str(late.value) + repr(late.value.details)


def test_made_ids_differ() -> None:
    made = [unique_id("otp") for _ in range(100)]
    assert len(set(made)) == 100
    assert all(each.startswith("otp-") for each in made)
