"""The SDK's key is refused while its run waits: nothing is approved by that, and with a good key the run goes on."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator

import pytest
from holdshort import AccessLost, Agent, AsyncClient, KeyRefused, NodeOwned, Verdict, WrongScope

from controlplane.domain import allow_list
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES, Key
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api, served
from tests.contract.planes import listening, until
from tests.postgres import Database

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
NODE = "contract-reviewer"


@pytest.fixture
async def guarded(database: Database) -> AsyncIterator[Api]:
    """A control plane that lets nobody in without a key."""
    async with served(database, open_mode=False, callback_allow=allow_list.parse("127.0.0.1")) as made:
        yield made


async def make(api: Api, scope: str = "agent", **more: str) -> tuple[Key, str]:
    wanted = Wanted(name=scope, scopes=(scope,), **more)  # type: ignore[arg-type]
    async with api.runtime.transaction() as conn:
        return await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)


async def revoke(api: Api, key: Key) -> None:
    async with api.runtime.transaction() as conn:
        await access.revoke(conn, key.key_id, SETUP)


async def decide(api: Api) -> None:
    """Somebody approves the one thing that waits."""
    _, text = await make(api, "review")
    async with AsyncClient(api.base, text) as desk:
        page = await until(desk.list_approvals, lambda page: len(page.approvals) == 1)
        await desk.decide(page.approvals[0].approval_id, Verdict(decision="approved"))


async def waits(api: Api, text: str) -> None:
    async with AsyncClient(api.base, text) as client:
        await until(client.list_approvals, lambda page: len(page.approvals) == 1)


async def one_run(agent: Agent, done: list[bool]) -> None:
    async with agent.execution("run-1"):
        result = await agent.pause("q")
        done.append(result.approved)


@pytest.mark.parametrize("callback", ["pull", "auto"])
async def test_a_wait_ends_with_the_key_and_goes_on_under_another_that_has_the_node(
    guarded: Api, caplog: pytest.LogCaptureFixture, callback: str
):
    key, text = await make(guarded)
    done: list[bool] = []
    running = asyncio.create_task(one_run(Agent(NODE, "1", guarded.base, text, callback=callback), done))  # type: ignore[arg-type]
    await waits(guarded, text)
    await revoke(guarded, key)
    with pytest.raises(AccessLost, match="revoked"):
        await running
    assert done == []
    assert [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR] != []
    second, other = await make(guarded)
    with pytest.raises(NodeOwned, match="holdshort nodes move"):
        await one_run(Agent(NODE, "1", guarded.base, other), done)
    async with guarded.runtime.transaction() as conn:
        await access.move_node(conn, NODE, second.key_id, SETUP)
    resumed = asyncio.create_task(one_run(Agent(NODE, "1", guarded.base, other), done))
    await decide(guarded)
    await resumed
    assert done == [True]


async def test_after_a_rotation_a_restart_goes_on(guarded: Api):
    key, text = await make(guarded, node_id=NODE)
    done: list[bool] = []
    running = asyncio.create_task(one_run(Agent(NODE, "1", guarded.base, text, callback="pull"), done))
    await waits(guarded, text)
    async with guarded.runtime.transaction() as conn:
        _, fresh = await access.rotate(conn, key.key_id, entropy=os.urandom(ENTROPY_BYTES), others_for=0.0, actor=SETUP)
    await waits(guarded, fresh)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    resumed = asyncio.create_task(one_run(Agent(NODE, "1", guarded.base, fresh), done))
    await decide(guarded)
    await resumed
    assert done == [True]


async def test_a_dispatched_run_waits_for_a_process_with_a_good_key(guarded: Api):
    key, text = await make(guarded)
    done: list[bool] = []

    def program(text: str) -> Agent:
        agent = Agent(NODE, "1", guarded.base, text)

        @agent.reasoner()
        async def work() -> bool:
            result = await agent.pause("q")
            done.append(result.approved)
            return result.approved

        return agent

    async with listening(program(text)), AsyncClient(guarded.base, text) as client:
        await until(client.list_nodes, lambda page: any(node.instances for node in page.nodes))
        run = await client.execute_async(NODE, "work", {})
        await waits(guarded, text)
        await revoke(guarded, key)
        with pytest.raises(KeyRefused):
            await until(client.list_nodes, lambda _: False)
    second, other = await make(guarded)
    async with guarded.runtime.transaction() as conn:
        await access.move_node(conn, NODE, second.key_id, SETUP)
    async with listening(program(other)), AsyncClient(guarded.base, other) as client:
        assert (await client.get_execution(run.execution_id)).status == "waiting"
        assert done == []
        await decide(guarded)

        async def ended() -> str:
            return (await client.get_execution(run.execution_id)).status

        assert await until(ended, lambda status: status == "succeeded")
    assert done == [True]


async def test_each_kind_of_refusal_has_its_own_error(guarded: Api):
    _, review = await make(guarded, "review")
    _, bound = await make(guarded, node_id="another")
    await make(guarded)
    for text, kind in ((None, KeyRefused), (f"{bound}x", KeyRefused), (review, WrongScope), (bound, NodeOwned)):
        done: list[bool] = []
        with pytest.raises(kind) as refused:
            await one_run(Agent(NODE, "1", guarded.base, text), done)
        assert "holdshort" in refused.value.message.lower()
        assert done == []
