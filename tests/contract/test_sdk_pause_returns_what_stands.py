import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from holdshort import (
    Agent,
    AmbiguousRequestId,
    ApprovalResult,
    AsyncClient,
    ExecutionCancelled,
    ExecutionFinished,
    Verdict,
    WaitTimeout,
)

from tests.contract.planes import Plane, asked, listening

ONE_SECOND = 1 / 3600
Name = Callable[[str], str]


@pytest.fixture(params=["push", "pull", "auto"])
async def agent(request: pytest.FixtureRequest, plane: Plane, fresh: Name) -> AsyncIterator[Agent]:
    made = Agent(fresh("node"), "1", control_plane_url=plane.url, callback=request.param)
    if request.param == "pull":
        yield made
        return
    async with listening(made):
        yield made


def pausing(agent: Agent, run: str, request_id: str, **question: Any) -> "asyncio.Task[ApprovalResult]":
    """A run that pauses once and ends."""

    async def work() -> ApprovalResult:
        async with agent.execution(run):
            return await agent.pause(request_id, **question)

    return asyncio.create_task(work())


@pytest.mark.parametrize("data", [{"limit": 5}, 0, "", False, [], {}, None])
async def test_an_approval_comes_with_its_feedback_and_exactly_its_data(
    agent: Agent, client: AsyncClient, fresh: Name, data: Any
):
    waiting = pausing(agent, fresh("run"), fresh("q"))
    (question,) = await asked(client, fresh("q"))
    await client.decide(question.approval_id, Verdict(decision="approved", feedback="fine", response=data))
    result = await waiting
    assert (result.approved, result.feedback, result.data) == (True, "fine", data)
    assert type(result.data) is type(data)
    assert (result.execution_id, result.approval_id, result.round) == (fresh("run"), question.approval_id, 1)
    assert (await client.get_execution(fresh("run"))).status == "succeeded"


async def test_after_a_rejection_the_code_cleans_up_and_its_result_is_kept(
    agent: Agent, client: AsyncClient, fresh: Name
):
    async def work() -> ApprovalResult:
        async with agent.execution(fresh("run")) as run:
            result = await agent.pause(fresh("q"))
            with pytest.raises(ExecutionFinished) as refused:
                await agent.pause(fresh("another"))
            assert refused.value.details["execution_status"] == "cancelled"
            run.result = {"cleaned": True}
            return result

    waiting = asyncio.create_task(work())
    (question,) = await asked(client, fresh("q"))
    await client.decide(question.approval_id, Verdict(decision="rejected", reason="too dear"))
    result = await waiting
    assert (result.rejected, result.feedback) == (True, "too dear")
    stands = await client.get_execution(fresh("run"))
    assert (stands.status, stands.status_reason) == ("cancelled", "approval_rejected: too dear")
    assert stands.result == {"cleaned": True}


async def test_changes_open_the_next_round(agent: Agent, client: AsyncClient, fresh: Name):
    async def work() -> list[tuple[int, str]]:
        async with agent.execution(fresh("run")):
            first = await agent.pause(fresh("q"), payload={"draft": 1})
            second = await agent.pause(fresh("q"), payload={"draft": 2})
            return [(each.round, each.decision) for each in (first, second)]

    waiting = asyncio.create_task(work())
    for round_, decision in ((1, "request_changes"), (2, "approved")):
        (question,) = await asked(client, fresh("q"), round_=round_)
        assert question.payload == {"draft": round_}
        await client.decide(question.approval_id, Verdict(decision=decision))
    assert await waiting == [(1, "request_changes"), (2, "approved")]


async def test_a_deadline_cancels_the_run_unless_it_shall_resume(agent: Agent, client: AsyncClient, fresh: Name):
    ended = pausing(agent, fresh("ended"), fresh("q"), expires_in_hours=ONE_SECOND)

    async def resumed() -> ApprovalResult:
        async with agent.execution(fresh("resumed")):
            first = await agent.pause(fresh("r"), expires_in_hours=ONE_SECOND, on_expiry="resume")
            assert first.expired
            return await agent.pause(fresh("r"), on_expiry="resume")

    goes_on = asyncio.create_task(resumed())
    assert (await ended).expired
    stands = await client.get_execution(fresh("ended"))
    assert (stands.status, stands.status_reason) == ("cancelled", "approval_expired")
    (question,) = await asked(client, fresh("r"), round_=2)
    await client.decide(question.approval_id, Verdict(decision="approved"))
    assert (await goes_on).round == 2
    assert (await client.get_execution(fresh("resumed"))).status == "succeeded"


async def test_a_question_that_is_taken_back_is_withdrawn_and_the_run_goes_on(
    agent: Agent, client: AsyncClient, fresh: Name
):
    waiting = pausing(agent, fresh("run"), fresh("q"))
    (question,) = await asked(client, fresh("q"))
    await client.withdraw(question.approval_id)
    assert (await waiting).withdrawn
    assert (await client.get_execution(fresh("run"))).status == "succeeded"


async def test_a_run_that_an_operator_cancels_stops(agent: Agent, client: AsyncClient, fresh: Name):
    waiting = pausing(agent, fresh("run"), fresh("q"))
    await asked(client, fresh("q"))
    await client.cancel_execution(fresh("run"), reason="wrong contract")
    with pytest.raises(ExecutionCancelled, match="wrong contract"):
        await waiting
    assert (await client.get_execution(fresh("run"))).status_reason == "wrong contract"


async def test_parallel_pauses_of_one_run_each_get_their_own_answer(agent: Agent, client: AsyncClient, fresh: Name):
    names = [fresh(f"q{n}") for n in range(5)]

    async def work() -> list[str]:
        async with agent.execution(fresh("run")):
            return [result.feedback for result in await asyncio.gather(*(agent.pause(name) for name in names))]

    waiting = asyncio.create_task(work())
    questions = [(await asked(client, name))[0] for name in names]
    verdicts = [Verdict(decision="approved", feedback=name) for name in names]
    await asyncio.gather(*(client.decide(q.approval_id, v) for q, v in zip(questions, verdicts, strict=True)))
    assert await waiting == names


async def test_a_rejection_withdraws_what_was_asked_beside_it(agent: Agent, client: AsyncClient, fresh: Name):
    async def work() -> list[str]:
        async with agent.execution(fresh("run")):
            return [each.decision for each in await asyncio.gather(agent.pause(fresh("a")), agent.pause(fresh("b")))]

    waiting = asyncio.create_task(work())
    (a,), _ = await asked(client, fresh("a")), await asked(client, fresh("b"))
    await client.decide(a.approval_id, Verdict(decision="rejected"))
    assert await waiting == ["rejected", "withdrawn"]


@pytest.mark.parametrize(("on_expiry", "status"), [("cancel", "cancelled"), ("resume", "succeeded")])
async def test_a_timeout_ends_the_question_on_the_server_too(
    agent: Agent, client: AsyncClient, fresh: Name, on_expiry: str, status: str
):
    result = await pausing(agent, fresh("run"), fresh("q"), timeout=0.2, on_expiry=on_expiry)
    assert result.expired
    assert (await client.get_approval(result.approval_id)).status == "expired"
    assert (await client.get_execution(fresh("run"))).status == status


async def test_a_decision_at_the_moment_of_the_timeout_is_the_same_on_both_sides(
    agent: Agent, client: AsyncClient, fresh: Name
):
    names = [fresh(f"q{n}") for n in range(12)]
    waiting = [
        pausing(agent, f"run-{name}", name, timeout=0.6 + n / 250, on_expiry="resume") for n, name in enumerate(names)
    ]
    # The others' time is up within milliseconds of the first one's: that is when they are decided.
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    decisions = (client.answer_execution(f"run-{name}", Verdict(decision="approved")) for name in names)
    await asyncio.gather(*decisions, return_exceptions=True)
    results = [(await each).decision for each in waiting]
    assert results == [(await client.get_approval_status(f"run-{name}")).status for name in names]
    assert "expired" in results
    assert set(results) <= {"expired", "approved"}


async def test_wait_for_resume_finds_what_was_decided_and_waits_for_what_was_not(
    agent: Agent, client: AsyncClient, fresh: Name
):
    waiting = pausing(agent, fresh("run"), fresh("q"))
    (question,) = await asked(client, fresh("q"))
    with pytest.raises(WaitTimeout):
        await agent.wait_for_resume(fresh("q"), timeout=0.1)
    assert (await client.get_approval(question.approval_id)).status == "pending"
    again = asyncio.create_task(agent.wait_for_resume(fresh("q"), execution_id=fresh("run")))
    await client.decide(question.approval_id, Verdict(decision="approved", feedback="both"))
    assert [(await each).feedback for each in (waiting, again)] == ["both", "both"]
    assert (await agent.wait_for_resume(fresh("q"))).feedback == "both"


async def test_a_request_id_of_several_runs_is_ambiguous_unless_one_is_named(
    agent: Agent, client: AsyncClient, fresh: Name
):
    both = [pausing(agent, fresh(run), fresh("q")) for run in ("one", "two")]
    questions = await asked(client, fresh("q"), count=2)
    with pytest.raises(AmbiguousRequestId) as refused:
        await agent.wait_for_resume(fresh("q"))
    assert {each["execution_id"] for each in refused.value.details["approvals"]} == {fresh("one"), fresh("two")}
    for question in questions:
        await client.decide(question.approval_id, Verdict(decision="approved", feedback=question.execution_id))
    assert [(await each).feedback for each in both] == [fresh("one"), fresh("two")]
    assert (await agent.wait_for_resume(fresh("q"), execution_id=fresh("two"))).feedback == fresh("two")
