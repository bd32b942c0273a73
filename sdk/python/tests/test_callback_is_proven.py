import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from holdshort import Agent, Approval
from holdshort.testing import ControlPlane
from holdshort.webhooks import sign

from sdk.python.tests.support import Wire, callback_body, serving


@pytest.fixture
async def pushed(plane: ControlPlane) -> AsyncIterator[tuple[Agent, "asyncio.Task[object]", Approval]]:
    """An agent on a real socket whose one pause only a callback can end."""
    agent = plane.connect(Agent("n", "1", callback="push"))
    async with serving(agent.asgi) as url:
        agent.reachable_at(url)
        async with agent.execution("run-1"):
            waiting = asyncio.create_task(agent.pause("x"))
            yield agent, waiting, await plane.asked()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)


Pushed = tuple[Agent, "asyncio.Task[object]", Approval]


async def test_a_signed_callback_resumes_whatever_its_time_and_may_be_repeated(
    plane: ControlPlane, wire: Wire, pushed: Pushed
) -> None:
    _, waiting, approval = pushed
    plane.decide(approval, "approved", "ok", data=[1])
    for _ in range(3):
        answer = await wire.push(approval, now=1)
        assert (answer.status_code, answer.json()) == (200, {"resolved": True})
    result = await waiting
    assert (result.feedback, result.data) == ("ok", [1])  # type: ignore[attr-defined]
    assert (await wire.push(approval)).json() == {"resolved": True}


async def test_another_secret_proves_nothing(plane: ControlPlane, wire: Wire, pushed: Pushed) -> None:
    _, waiting, approval = pushed
    plane.decide(approval, "rejected")
    answer = await wire.push(approval, secret="another secret of 16")
    assert answer.status_code == 401
    assert not waiting.done()
    plane_secret = plane._book.approvals[approval.approval_id].ask.callback_secret or ""
    assert len(plane_secret) >= 16
    assert (await wire.push(approval)).status_code == 200


async def test_a_tampered_body_proves_nothing(plane: ControlPlane, pushed: Pushed) -> None:
    agent, waiting, approval = pushed
    kept = plane._book.approvals[approval.approval_id].ask
    body = callback_body(approval, "rejected")
    headers = sign(kept.callback_secret or "", body, now=1, webhook_id="m")
    async with httpx.AsyncClient() as client:
        url = kept.callback_url or ""
        for forged in (body.replace(b"rejected", b"approved"), body + b" "):
            assert (await client.post(url, content=forged, headers=headers)).status_code == 401
        assert (await client.post(url, content=body)).status_code == 401
        for hostile in (b"", b"null", b"{}", b"[" * 5000, b'{"decision":"yes"}', b"\xff"):
            assert (await client.post(url, content=hostile, headers=headers)).status_code == 400
        assert (await client.post(url, content=b"x" * 1_100_000)).status_code == 413
    assert not waiting.done()
    assert agent.registry.secret is not None


async def test_nobody_waiting_is_not_resolved(plane: ControlPlane, wire: Wire, pushed: Pushed) -> None:
    agent, waiting, approval = pushed
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    plane.decide(approval, "approved")
    answer = await wire.push(approval)
    assert (answer.status_code, answer.json()) == (200, {"resolved": False})
    assert len(agent.registry) == 0
