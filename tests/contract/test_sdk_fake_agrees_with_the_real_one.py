from collections.abc import Callable
from typing import Any

import pytest
from holdshort import AsyncClient, Question, Verdict
from holdshort.testing import ControlPlane

from tests.contract.scripts import SCRIPTS, Doing, Ids, Script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
async def test_the_control_plane_in_memory_answers_as_the_real_one(
    client: AsyncClient, fresh: Callable[[str], str], script: Script
):
    ids = Ids(fresh("run"), fresh("node"))
    memory = ControlPlane()

    async def advance(_approval_id: str) -> None:
        memory.advance(seconds=2)

    async def wait(approval_id: str) -> None:
        assert (await client.wait_for_approvals([approval_id], wait=10)).approvals

    fake = Doing(AsyncClient(transport=memory.transport), advance)
    await script(fake, ids)
    real = Doing(client, wait)
    await script(real, ids)
    found = differences(fake.transcript, real.transcript)
    assert not found, "\n".join(found)


def differences(fake: list[Any], real: list[Any]) -> list[str]:
    return [f"{n}: {a} in memory, {b} really" for n, (a, b) in enumerate(zip(fake, real, strict=True)) if a != b]


async def test_both_tell_the_same_story(client: AsyncClient, fresh: Callable[[str], str]):
    memory = ControlPlane()
    stories = [await story(each, fresh("run")) for each in (AsyncClient(transport=memory.transport), client)]
    assert stories[0] == stories[1]
    assert stories[0][-1] == "execution.succeeded"


async def story(client: AsyncClient, run: str) -> list[str]:
    """A run with two rounds, told by the live stream."""
    await client.create_execution("node", run)
    for decision in ("request_changes", "approved"):
        asked = await client.request_approval(run, Question(approval_request_id="q"))
        await client.decide(asked.approval_id, Verdict(decision=decision))
    await client.report_status(run, "succeeded")
    seen = []
    async for event in client.events(execution_id=run):
        seen.append(event.type)
        if event.type == "execution.succeeded":
            break
    return seen
