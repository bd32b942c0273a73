import asyncio
import math
from typing import Any

import pytest
from holdshort import Agent, Client, InvalidField
from holdshort.testing import ControlPlane

from sdk.python.tests.support import eventually

NUMBERS = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_number_that_json_lacks_is_refused_by_its_field(
    plane: ControlPlane, agent: Agent, number: float
) -> None:
    questions: list[dict[str, Any]] = [{"expires_in_hours": number}, {"payload": {"amount": [number]}}]
    async with agent.execution("run-1"):
        for question in questions:
            with pytest.raises(InvalidField) as refused:
                await agent.pause("x", **question)
            assert refused.value.details["errors"][0]["field"] == next(iter(question))
    assert plane.approvals() == []


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_an_id_leads_to_no_other_route(plane: ControlPlane, name: str) -> None:
    with Client(transport=plane.blocking_transport) as client:
        for call in (client.withdraw, client.get_execution, client.get_approval_status):
            with pytest.raises(InvalidField):
                call(name)


async def test_a_made_id_is_the_same_whether_or_not_a_comprehension_has_a_frame(
    plane: ControlPlane, agent: Agent
) -> None:
    async def inner() -> None:
        several = [agent.pause() for _ in range(2)]
        await asyncio.gather(*several, *(agent.pause() for _ in range(1)), agent.pause())

    async with agent.execution("run-1"):
        asking = asyncio.create_task(inner())
        await eventually(lambda: len(plane.pending()) == 4)
        made = [approval.approval_request_id for approval in plane.approvals()]
        for approval in plane.pending():
            plane.decide(approval, "approved")
        await asking
    assert [each.rpartition("<locals>.")[2] for each in made] == ["inner:1", "inner:2", "inner:3", "inner:4"]
