import asyncio
from collections.abc import Callable
from typing import Any, Literal

import msgspec
import pytest
from holdshort import Agent, Approval, AsyncClient, FeedbackExpired, HoldshortError, Question, Registration, Verdict
from holdshort.testing import ControlPlane

from tests.contract import form_scripts  # noqa: F401  # its scripts are played too
from tests.contract.feedback_scripts import MINE
from tests.contract.planes import Plane, asked
from tests.contract.scripts import SCRIPTS, Doing, Ids, Script, steady

OnExpiry = Literal["cancel", "resume"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
async def test_the_control_plane_in_memory_answers_as_the_real_one(
    client: AsyncClient, fresh: Callable[[str], str], script: Script
):
    ids = Ids(fresh("run"), fresh("node"))
    memory = ControlPlane()

    async def advance(_asked_id: str) -> None:
        memory.advance(seconds=5)

    async def wait(asked_id: str) -> None:
        if asked_id.startswith("apr_"):
            assert (await client.wait_for_approvals([asked_id], wait=10)).approvals
            return
        with pytest.raises(FeedbackExpired):
            await client.feedback_answer(asked_id, wait=10)

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


async def test_both_tell_of_questions_alike(client: AsyncClient, fresh: Callable[[str], str]):
    memory = AsyncClient(transport=ControlPlane().transport)
    told = [await questions_told(each, fresh("q")) for each in (memory, client)]
    assert told[0] == told[1]
    assert [kind for kind, _ in told[0]] == ["blocking_human_feedback"] * 2 + ["human_feedback_resolved"] * 2


async def questions_told(client: AsyncClient, name: str) -> list[Any]:
    """What the live stream says of one question that waits already, and of one that comes."""
    seen: list[Any] = []
    await client.ask_feedback(f"{name}-1", "Which?", MINE.public_key, options=["Red", "Blue"], session_id="s")
    async for event in client.feedback_events():
        if not event.data["request_id"].startswith(name):
            continue
        seen.append((event.type, steady(event.data)))
        if len(seen) == 1:
            await client.ask_feedback(f"{name}-2", "Yes?", MINE.public_key, kind="yes_no", yes_label="Go")
            await client.submit_feedback(f"{name}-1", "Red")
        if len(seen) == 3:
            await client.end_feedback(f"{name}-2")
        if len(seen) == 4:
            break
    return seen


async def test_both_know_nodes_alike(client: AsyncClient, fresh: Callable[[str], str]):
    memory = AsyncClient(transport=ControlPlane().transport)
    known = [await fleet(each, fresh("node"), fresh("instance")) for each in (memory, client)]
    assert known[0] == known[1]


async def fleet(client: AsyncClient, node: str, instance: str) -> list[Any]:
    """What is said of a node that comes, drains and goes, and of a run for it that nobody takes."""
    seen: list[Any] = []

    async def do(method: str, *args: Any, **kwargs: Any) -> None:
        try:
            said = await getattr(client, method)(*args, **kwargs)
        except HoldshortError as error:
            seen.append((type(error).__name__, error.code, node in error.details.get("registered", ())))
            return
        shown = msgspec.to_builtins(said)
        shown["instances"] = [
            {name: each[name] for name in ("instance_id", "base_url", "status", "version", "reasoners")}
            for each in shown.get("instances", ())
        ]
        # The real one writes an absent limit as null, and keeps more times.
        shown["reasoners"] = [each["name"] for each in shown.get("reasoners", ())]
        seen.append({name: value for name, value in shown.items() if name not in MADE_THERE})

    for which in ("unknown", "coming", "draining", "gone"):
        if which == "coming":
            await do("register_node", registration(node, instance))
        if which == "draining":
            await do("heartbeat", node, instance, status="draining")
        if which == "gone":
            await do("shutdown_node", node, instance)
            await do("shutdown_node", node, instance)
        await do("get_node", node)
        await do("execute_async", node, "never")
        await do("heartbeat", node, "another")
        await do("hand_back", node, instance, [("never", 1)])
    await do("execute_async", node, "work", [1], idempotency_key=node)
    await do("execute", node, "work", [1], wait=0, idempotency_key=node)
    await do("execute", node, "work", [2], wait=0, idempotency_key=node)
    await do("execute", node, "work", [1], wait=-1, idempotency_key=node)
    return seen


MADE_THERE = {
    "execution_id", "run_id", "registered_at", "created_at", "started_at", "updated_at", "message", "timestamp",
    "attempts", "last_error",
}  # fmt: skip


def registration(node: str, instance: str) -> Registration:
    return Registration(
        node_id=node,
        base_url="http://127.0.0.1:1",
        instance_id=instance,
        version="1",
        reasoners=[{"name": "work", "resume": "when_decided"}],
        features={"replay": True, "fence": True},
        lease_seconds=15,
    )


ENDINGS = [
    ["approved"],
    ["rejected"],
    ["request_changes", "approved"],
    ["request_changes", "request_changes", "rejected"],
    ["withdraw", "approved"],
    ["expire", "approved"],
    ["request_changes", "expire", "withdraw", "approved"],
    ["cancel"],
]


@pytest.mark.parametrize("on_expiry", ["cancel", "resume"])
@pytest.mark.parametrize("endings", ENDINGS, ids="-".join)
async def test_an_agent_lives_the_same_on_both(
    plane: Plane, client: AsyncClient, fresh: Callable[[str], str], endings: list[str], on_expiry: OnExpiry
):
    memory = ControlPlane()
    fake = memory.connect(Agent(fresh("node"), "1"))
    real = Agent(fresh("node"), "1", control_plane_url=plane.url)
    lived = await life(fake, AsyncClient(transport=memory.transport), fresh("run"), endings, on_expiry=on_expiry)
    assert lived == await life(real, client, fresh("run"), endings, on_expiry=on_expiry)
    assert lived


async def life(agent: Agent, client: AsyncClient, run: str, endings: list[str], *, on_expiry: OnExpiry) -> list[Any]:
    """What an agent sees that asks until it is approved, and how its run ends."""
    seen: list[Any] = []

    async def work() -> None:
        async with agent.execution(run) as execution:
            while not seen or seen[-1][0] != "approved":
                result = await agent.pause(f"q-{run}", payload=len(seen), on_expiry=on_expiry)
                seen.append((result.decision, result.feedback, result.data, result.round))
            execution.result = len(seen)

    working = asyncio.create_task(work())
    for number, ending in enumerate(endings, 1):
        (question,) = await asked(client, f"q-{run}", round_=number)
        await end(client, question, ending)
        if ending == "expire" and on_expiry == "cancel":
            break
    (ended,) = await asyncio.gather(working, return_exceptions=True)
    stands = await client.get_execution(run)
    # An error is kept with its sentence, and each control plane has its own.
    kind = str(stands.error or "").partition(":")[0]
    return [*seen, type(ended).__name__, stands.status, stands.status_reason, stands.result, kind]


async def end(client: AsyncClient, question: Approval, ending: str) -> None:
    if ending == "cancel":
        await client.cancel_execution(question.execution_id, reason="enough")
    elif ending in {"withdraw", "expire"}:
        await getattr(client, ending)(question.approval_id)
    else:
        verdict = Verdict(decision=ending, feedback=f"round {question.round}", response=[question.payload])
        await client.decide(question.approval_id, verdict)
