import asyncio
from typing import Any

import pytest
from holdshort import Agent, ApprovalResult, NoExecution
from holdshort.testing import ControlPlane, RunFailed

from sdk.python.tests.support import eventually


@pytest.fixture
def review(agent: Agent) -> None:
    @agent.reasoner()
    async def review(document: str) -> dict[str, Any]:
        result = await agent.pause("review_v1", payload={"document": document})
        return {"decision": result.decision, "feedback": result.feedback, "data": result.data}


@pytest.mark.usefixtures("review")
@pytest.mark.parametrize("decision", ["approved", "rejected", "request_changes"])
async def test_each_decision(plane: ControlPlane, agent: Agent, decision: str) -> None:
    running = asyncio.create_task(plane.call(agent, "review", "run-1", document="a"))
    approval = await plane.asked("review_v1")
    assert plane.execution("run-1").status == "waiting"
    assert approval.payload == {"document": "a"}
    plane.decide(approval, decision, "because")
    assert await running == {"decision": decision, "feedback": "because", "data": None}
    assert plane.execution("run-1").status == ("cancelled" if decision == "rejected" else "succeeded")


@pytest.mark.usefixtures("review")
@pytest.mark.parametrize("data", [None, {}, [], False, 0, "", {"a": [1.5]}])
async def test_the_senders_own_data_is_kept_exactly(plane: ControlPlane, agent: Agent, data: Any) -> None:
    running = asyncio.create_task(plane.call(agent, "review", document="a"))
    plane.decide(await plane.asked(), "approved", data=data)
    answer = await running
    assert answer["data"] == data
    assert type(answer["data"]) is type(data)


@pytest.mark.usefixtures("review")
async def test_expiry_is_nobodys_decision(plane: ControlPlane, agent: Agent) -> None:
    running = asyncio.create_task(plane.call(agent, "review", "run-1", document="a"))
    await plane.asked()
    plane.advance(hours=72, seconds=-0.001)
    assert plane.execution("run-1").status == "waiting"
    plane.advance(seconds=0.001)
    assert (await running)["decision"] == "expired"
    assert plane.execution("run-1").status_reason == "approval_expired"


def test_a_result_has_no_truth_value() -> None:
    result = ApprovalResult(
        decision="rejected", feedback="", execution_id="e", approval_request_id="r", approval_id="a", round=1
    )
    with pytest.raises(TypeError, match=r"result\.approved"):
        bool(result)
    assert (result.approved, result.rejected, result.changes_requested) == (False, True, False)
    assert (result.expired, result.withdrawn) == (False, False)


async def test_two_pauses_at_once(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1") as run:
        both = asyncio.gather(agent.pause("legal"), agent.pause("money"))
        await plane.asked("legal")
        await plane.asked("money")
        plane.decide("money", "approved")
        assert plane.execution("run-1").status == "waiting"
        plane.decide("legal", "request_changes")
        legal, money = await both
        run.result = [legal.decision, money.decision]
    assert plane.execution("run-1").result == ["request_changes", "approved"]


async def test_a_rejection_withdraws_the_other_questions_and_the_code_sees_both(
    plane: ControlPlane, agent: Agent
) -> None:
    async with agent.execution("run-1"):
        both = asyncio.gather(agent.pause("legal"), agent.pause("money"))
        await plane.asked("legal")
        await plane.asked("money")
        plane.decide("money", "rejected")
        legal, money = await both
    assert (legal.decision, money.decision) == ("withdrawn", "rejected")
    assert plane.execution("run-1").status == "cancelled"


async def test_a_run_knows_its_own_id(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    async def who() -> str | None:
        return agent.execution_id

    @agent.reasoner()
    def plainly() -> str | None:
        return agent.execution_id

    assert await plane.call(agent, "who", "run-1") == "run-1"
    assert await plane.call(agent, "plainly", "run-2") == "run-2"
    assert agent.execution_id is None


async def test_a_plain_function_pauses_in_its_own_thread(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    def plain() -> str:
        agent.note("before")
        return agent.pause_sync(title="Really?").decision

    runs = [asyncio.create_task(plane.call(agent, "plain", f"run-{n}")) for n in range(40)]
    await eventually(lambda: len(plane.pending()) == 40)
    assert {each.approval_request_id for each in plane.pending()} == {f"pause:{plain.__qualname__}:1"}
    for approval in plane.pending():
        plane.decide(approval, "approved")
    assert await asyncio.gather(*runs) == ["approved"] * 40
    assert plane.notes("run-7") == ["before"]


async def test_a_pause_needs_a_run(agent: Agent) -> None:
    with pytest.raises(NoExecution):
        await agent.pause("x")
    with pytest.raises(NoExecution):
        agent.pause_sync("x")
    async with agent.execution():
        with pytest.raises(NoExecution, match="block the event loop"):
            agent.pause_sync("x")


async def test_a_pause_for_a_named_run(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        pass
    with pytest.raises(RunFailed):
        await plane.call(agent, "nobody")
    plane._book.executions["run-1"].status = "running"
    waiting = asyncio.create_task(agent.pause("x", execution_id="run-1"))
    plane.decide(await plane.asked(), "approved")
    assert (await waiting).approved


async def test_notes_never_raise(plane: ControlPlane, agent: Agent) -> None:
    agent.note("nowhere")
    async with agent.execution("run-1"):
        for n in range(5):
            agent.note(str(n), tags=["x"])
    assert plane.notes("run-1") == ["0", "1", "2", "3", "4"]


async def test_an_operators_cancellation_stops_the_code(plane: ControlPlane, agent: Agent) -> None:
    went_on = []

    @agent.reasoner()
    async def stubborn() -> None:
        try:
            await agent.pause("x")
        except Exception:
            went_on.append("swallowed")
        went_on.append("went on")

    running = asyncio.create_task(plane.call(agent, "stubborn", "run-1"))
    await plane.asked()
    plane.cancel("run-1", "no longer wanted")
    with pytest.raises(RunFailed) as failure:
        await running
    assert failure.value.code == "execution_cancelled"
    assert "no longer wanted" in failure.value.message
    assert went_on == []
    assert plane.execution("run-1").status_reason == "no longer wanted"


async def test_a_withdrawn_question_lets_the_run_go_on(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("x"))
        plane.withdraw(await plane.asked())
        assert (await waiting).withdrawn
        again = asyncio.create_task(agent.pause("x"))
        second = await plane.asked()
        assert second.round == 2
        plane.decide(second, "approved")
        assert (await again).round == 2
