import asyncio
import contextvars
from typing import Any

import pytest
from holdshort import Agent
from holdshort.testing import ControlPlane


@pytest.mark.parametrize("tags", [None, 5, [object()], "word"])
async def test_whatever_the_tags_are(plane: ControlPlane, agent: Agent, tags: Any) -> None:
    async with agent.execution("run-1"):
        agent.note("first", tags)
        agent.note("second")
    assert plane.execution("run-1").status == "succeeded"
    assert plane.notes("run-1")[-1] == "second"


@pytest.mark.parametrize("message", [object(), "\udc80", 1, None])
async def test_whatever_the_message_is_the_next_note_is_kept(plane: ControlPlane, agent: Agent, message: Any) -> None:
    async with agent.execution("run-1"):
        agent.note(message)
        agent.note("second")
    assert plane.notes("run-1")[-1] == "second"


def test_when_the_loop_is_closed(plane: ControlPlane, agent: Agent) -> None:
    kept: list[contextvars.Context] = []

    async def work() -> None:
        async with agent.execution("run-1"):
            kept.append(contextvars.copy_context())

    asyncio.run(work())
    kept[0].run(agent.note, "late")
