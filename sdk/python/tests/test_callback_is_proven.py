import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from holdshort import Agent, Approval
from holdshort.testing import ControlPlane
from holdshort.webhooks import sign

from sdk.python.tests.support import Wire, callback_body, eventually, serving


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


def kept_of(plane: ControlPlane, approval: Approval) -> tuple[str, str]:
    """Where an approval's callback goes, and the secret that signs it."""
    ask = plane._book.approvals[approval.approval_id].ask
    return ask.callback_url or "", ask.callback_secret or ""


async def posted(url: str, body: bytes, headers: list[tuple[str, str]] | dict[str, str]) -> httpx.Response:
    async with httpx.AsyncClient() as client:
        return await client.post(url, content=body, headers=headers)


async def test_the_secret_of_another_request_proves_nothing(plane: ControlPlane, pushed: Pushed) -> None:
    agent, waiting, first = pushed
    other = asyncio.create_task(agent.pause("y"))
    second = await plane.asked("y")
    url, secret = kept_of(plane, first)
    assert kept_of(plane, second)[1] != secret
    body = callback_body(second, "approved")
    assert (await posted(url, body, sign(secret, body, now=1, webhook_id="m"))).status_code == 401
    assert not other.done()
    # What is meant stands in what was signed: the headers of one body prove no other.
    mine = sign(secret, callback_body(first, "approved"), now=1, webhook_id="m")
    assert (await posted(url, body, mine)).status_code == 401
    assert not waiting.done()
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)


async def test_a_callback_of_an_earlier_round_answers_no_later_one(plane: ControlPlane, pushed: Pushed) -> None:
    agent, waiting, first = pushed
    url, secret = kept_of(plane, first)
    plane.decide(first, "request_changes")
    body = callback_body(first, "request_changes")
    headers = sign(secret, body, now=1, webhook_id="m")
    assert (await posted(url, body, headers)).json() == {"resolved": True}
    assert (await waiting).changes_requested  # type: ignore[attr-defined]
    again = asyncio.create_task(agent.pause("x"))
    second = await plane.asked("x")
    assert second.round == 2
    assert (await posted(url, body, headers)).json() == {"resolved": True}
    forged = callback_body(second, "approved")
    assert (await posted(url, forged, sign(secret, forged, now=1, webhook_id="m"))).status_code == 401
    assert not again.done()
    again.cancel()
    await asyncio.gather(again, return_exceptions=True)


async def test_only_the_one_scheme_of_callbacks_proves_one(plane: ControlPlane, pushed: Pushed) -> None:
    _, waiting, approval = pushed
    url, secret = kept_of(plane, approval)
    body = callback_body(approval, "approved")
    right = sign(secret, body, now=1, webhook_id="m")
    name = "webhook-signature"
    wrong = "v1," + "A" * 43 + "="
    refused: list[list[tuple[str, str]]] = [
        [],
        list(sign(secret, body, scheme="body").items()),
        list(sign(secret, body, scheme="timestamped", now=1).items()),
        *([item for item in right.items() if item[0] != left_out] for left_out in right),
        list({**right, name: right[name].replace("v1,", "v1a,")}.items()),
        list({**right, name: right[name].lower()}.items()),
        list({**right, name: " ".join([wrong] * 10 + [right[name]])}.items()),
        list({**right, "webhook-id": "n"}.items()),
        list({**right, "webhook-timestamp": "2"}.items()),
        list({**right, "webhook-timestamp": "-1"}.items()),
        [*right.items(), ("webhook-id", "m")],
        [*right.items(), ("webhook-timestamp", "1")],
        [("webhook-id", "n"), *right.items()],
    ]
    for headers in refused:
        answer = await posted(url, body, headers)
        assert (answer.status_code, answer.json()["error"]) == (401, "invalid_signature"), headers
    assert not waiting.done()
    several = {**right, name: f"{wrong} v2,abc {right[name]}"}
    assert (await posted(url, body, several)).json() == {"resolved": True}


async def test_whoever_waits_again_has_a_new_secret_and_the_old_one_ends(plane: ControlPlane, pushed: Pushed) -> None:
    agent, waiting, approval = pushed
    url, before = kept_of(plane, approval)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    resumed = asyncio.create_task(agent.wait_for_resume("x"))
    await eventually(lambda: kept_of(plane, approval)[1] != before)
    body = callback_body(approval, "approved")
    assert (await posted(url, body, sign(before, body, now=1, webhook_id="m"))).status_code == 401
    assert not resumed.done()
    after = kept_of(plane, approval)[1]
    plane.decide(approval, "approved")
    assert (await posted(url, body, sign(after, body, now=1, webhook_id="m"))).json() == {"resolved": True}
    assert (await resumed).approved


async def test_a_callback_while_nobody_waits_changes_nothing_for_whoever_waits_later(
    plane: ControlPlane, pushed: Pushed
) -> None:
    agent, waiting, approval = pushed
    url, _ = kept_of(plane, approval)
    body = callback_body(approval, "approved")
    unknown = body.replace(b"run-1", b"run-2")
    assert (await posted(url, unknown, {})).json() == {"resolved": False}
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert (await posted(url, body, sign("guessed-by-someone", body, now=1, webhook_id="m"))).json() == {
        "resolved": False
    }
    later = asyncio.create_task(agent.pause("x"))
    await eventually(lambda: len(agent.registry) == 1)
    assert not later.done()
    later.cancel()
    await asyncio.gather(later, return_exceptions=True)
