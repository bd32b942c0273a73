"""The server is killed at each step from a webhook to its callback: the decision stands once, and its agent is told."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from tests.durability.conftest import Figures
from tests.durability.gates import Gate, Gates, gates
from tests.durability.invariants import broken, settled
from tests.durability.plane import Plane, Webhook, ask, planes, until
from tests.durability.receiver import TAKEN, Receiver, receiver
from tests.durability.wire import GONE, Reply, Wire
from tests.postgres import Database, wait_until_any_blocked

LEASE_SECONDS = 20.0


class Scene(NamedTuple):
    """What every point is played on."""

    plane: Plane
    gates: Gates
    told: Receiver
    watcher: Any
    webhook: Webhook

    async def post(self) -> Reply:
        """Send the decision; status 0 when the server was gone before it answered."""
        wire = Wire(self.plane.url)
        try:
            return await self.webhook.post(wire)
        except GONE:
            return Reply(0, None)
        finally:
            await wire.close()

    async def kill(self) -> None:
        await asyncio.to_thread(self.plane.kill)

    async def kill_at(self, gate: Gate) -> None:
        """Kill the server while it is held at a gate, and open the gate."""
        await wait_until_any_blocked(self.watcher)
        await self.kill()
        await self.gates.open(gate)

    async def status(self) -> str:
        await until(self._nothing_runs)
        found: str = await self.watcher.fetchval("SELECT status FROM approvals")
        return found

    async def _nothing_runs(self) -> bool:
        """Whether the killed server's backends have ended, with what they were about to do."""
        others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state <> 'idle'"
        return bool(await self.watcher.fetchval(f"{others} AND pid <> pg_backend_pid()") == 0)


async def before_the_commit(scene: Scene) -> int:
    """Nothing stands; the webhook sent again decides as if it were the first."""
    await scene.gates.close(Gate.STATEMENT)
    posting = asyncio.create_task(scene.post())
    await scene.kill_at(Gate.STATEMENT)
    assert (await posting).status == 0
    assert await scene.status() == "pending"
    await asyncio.to_thread(scene.plane.start)
    again = await scene.post()
    assert (again.body["status"], again.body.get("replayed", False)) == ("processed", False)
    return 1


async def between_commit_and_answer(scene: Scene) -> int:
    """It stands though nobody was told; the webhook sent again gets the first answer."""
    await scene.gates.close(Gate.COMMIT)
    posting = asyncio.create_task(scene.post())
    await scene.kill_at(Gate.COMMIT)
    assert (await posting).status == 0
    assert await scene.status() == "approved"
    assert scene.told.told == []
    await asyncio.to_thread(scene.plane.start)
    again = await scene.post()
    assert (again.body["status"], again.body["replayed"]) == ("processed", True)
    return 1


async def between_answer_and_callback(scene: Scene) -> int:
    """The sender was told 200, and no callback had been claimed."""
    await scene.gates.close(Gate.DELIVERY)
    assert (await scene.post()).body["status"] == "processed"
    await scene.kill()
    await scene.gates.open(Gate.DELIVERY)
    assert scene.told.told == []
    await asyncio.to_thread(scene.plane.start)
    return 1


async def while_the_agent_has_the_callback(scene: Scene) -> int:
    """The agent has read the callback and not answered: it is told again when the lease has passed."""
    arrived = asyncio.Event()

    async def hang(_: dict[str, Any]) -> bytes | None:
        arrived.set()
        await asyncio.Event().wait()
        return None

    usual, scene.told.answer = scene.told.answer, hang
    assert (await scene.post()).body["status"] == "processed"
    await arrived.wait()
    await scene.kill()
    scene.told.answer = usual
    await asyncio.to_thread(scene.plane.start)
    return 2


async def between_the_agents_answer_and_its_record(scene: Scene) -> int:
    """The agent said that it has it, and the server died before it wrote that down: told again, harmlessly."""

    async def close_the_gate_and_take(_: dict[str, Any]) -> bytes | None:
        await scene.gates.close(Gate.DELIVERY)
        return TAKEN

    usual, scene.told.answer = scene.told.answer, close_the_gate_and_take
    assert (await scene.post()).body["status"] == "processed"
    await until(lambda: arrived_once(scene))
    scene.told.answer = usual
    await scene.kill_at(Gate.DELIVERY)
    await asyncio.to_thread(scene.plane.start)
    return 2


async def arrived_once(scene: Scene) -> bool:
    return len(scene.told.told) == 1


POINTS = [
    before_the_commit,
    between_commit_and_answer,
    between_answer_and_callback,
    while_the_agent_has_the_callback,
    between_the_agents_answer_and_its_record,
]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(
    "lease_is_waited_for",
    [pytest.param(False, id="quick"), pytest.param(True, id="long", marks=pytest.mark.proof)],
)
async def test_killed(
    database: Database, figures: Figures, point: Callable[[Scene], Awaitable[int]], *, lease_is_waited_for: bool
):
    watcher = await database.connect()
    async with gates(database) as built, receiver() as told:
        with planes(database.url) as (plane,):
            wire = Wire(plane.url)
            asked = await ask(wire, "run", "deploy", callback_url=told.url)
            await wire.close()
            copies = await point(Scene(plane, built, told, watcher, Webhook("run", "deploy", "approved")))
            if not lease_is_waited_for:
                await watcher.execute("UPDATE deliveries SET lease_until = clock_timestamp() WHERE status = 'pending'")
            seconds = await until(lambda: settled_and_told(watcher, told, copies), seconds=LEASE_SECONDS)
    assert [each["decision"] for each in told.told] == ["approved"] * copies
    assert list(told.copies.values()) == [copies]
    assert told.decisions(asked["approval_id"]) == {"approved"}
    assert await broken(watcher) == []
    await watcher.close()
    figures(f"killed {point.__name__.replace('_', ' ')}", callbacks=copies, told_s_after_the_restart=seconds)


async def settled_and_told(connection: Any, told: Receiver, copies: int) -> bool:
    return len(told.told) >= copies and await settled(connection)
