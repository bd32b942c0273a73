import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from holdshort import Agent, AsyncClient, InvalidAnswer, Verdict

from tests.contract.planes import Plane, asked, listening

Name = Callable[[str], str]


class Transfer(msgspec.Struct):
    amount: int
    to: str = "Ann"


SCHEMA = {"type": "object", "properties": {"amount": {"type": "integer", "minimum": 1}}, "required": ["amount"]}


@pytest.fixture(params=["push", "pull"])
def agent(request: pytest.FixtureRequest, plane: Plane, fresh: Name) -> Agent:
    return Agent(fresh("node"), "1", control_plane_url=plane.url, callback=request.param)


@pytest.mark.parametrize(
    ("question", "values", "answer"),
    [
        ({}, " because\n", " because\n"),
        ({"kind": "yes_no", "no_label": "Keep it"}, "keep it", "no"),
        ({"options": ["Red", "Blue"]}, "blue", "Blue"),
        ({"schema": SCHEMA}, {"amount": 3}, {"amount": 3}),
        ({"schema": Transfer}, {"amount": 3, "to": "Ben"}, Transfer(3, "Ben")),
    ],
)
async def test_an_answer_comes_as_it_was_asked_for(
    agent: Agent, client: AsyncClient, fresh: Name, question: dict[str, Any], values: Any, answer: Any
):
    async with listening(agent), agent.execution(fresh("run")):
        waiting = asyncio.create_task(agent.ask("Which?", approval_request_id=fresh("q"), **question))
        (shown,) = await asked(client, fresh("q"))
        with pytest.raises(InvalidAnswer):
            await client.decide(shown.approval_id, Verdict(decision="approved", values=[values]))
        await client.decide(shown.approval_id, Verdict(decision="approved", values=values))
        result = await waiting
    assert (shown.title, result.approved, result.values) == ("Which?", True, answer)
    # Started again, it finds its answer.
    again = await agent.wait_for_resume(fresh("q"))
    assert again.data == result.data


async def test_a_payload_is_approved_with_changes(agent: Agent, client: AsyncClient, fresh: Name):
    question: dict[str, Any] = {"payload": {"amount": 100, "to": "Ann"}, "editable": True, "schema": Transfer}
    async with listening(agent), agent.execution(fresh("run")):
        waiting = asyncio.create_task(agent.pause(fresh("q"), **question))
        (shown,) = await asked(client, fresh("q"))
        assert shown.form is not None
        assert (shown.form.editable, shown.payload) == (True, {"amount": 100, "to": "Ann"})
        changed = Verdict(decision="approved", values={"amount": 50, "to": "Ben"}, payload_digest=shown.payload_digest)
        await client.decide(shown.approval_id, changed)
        result = await waiting
    assert (result.values, result.original) == (Transfer(50, "Ben"), Transfer(100, "Ann"))


async def test_a_rejection_is_no_answer(agent: Agent, client: AsyncClient, fresh: Name):
    async with listening(agent), agent.execution(fresh("run")):
        waiting = asyncio.create_task(agent.ask("Which?", approval_request_id=fresh("q")))
        (shown,) = await asked(client, fresh("q"))
        await client.decide(shown.approval_id, Verdict(decision="rejected", response={"values": "Red"}))
        result = await waiting
    assert (result.decision, result.values, result.data) == ("rejected", None, {"values": "Red"})
