"""An instance stops while a run is on its way to it: the run, which it never took, goes on in the next one, once."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.durability.agents import AgentProcess, Agents, agents
from tests.durability.gates import Gate, Gates, gates
from tests.durability.invariants import broken, settled
from tests.durability.journal import deeds, taken, working
from tests.durability.outcomes import released
from tests.durability.plain_agent import start
from tests.durability.plane import planes, until
from tests.durability.wire import Wire
from tests.postgres import Database, wait_until_any_blocked

QUICK_SECONDS = 0.02
LET_GO = "SELECT status = 'queued' AND instance_id IS NULL FROM executions WHERE execution_id = $1"


class Scene(NamedTuple):
    """The one instance that there is, which is about to stop."""

    wire: Wire
    gates: Gates
    programs: Agents
    stopping: AgentProcess
    connection: Any
    place: Path

    async def claimed(self) -> str:
        """A run that is claimed for the instance, and sent when the gate opens; its id."""
        await self.gates.close(Gate.DISPATCH_COMMIT)
        run = await start(self.wire, number=1, questions=[], seconds=QUICK_SECONDS)
        await wait_until_any_blocked(self.connection)
        return run

    async def stop(self) -> None:
        """SIGTERM; on return it takes nothing new, and the control plane knows."""
        self.stopping.process.terminate()
        status = "SELECT status <> 'live' FROM instances WHERE instance_id = $1"
        await until(lambda: self.connection.fetchval(status, self.stopping.instance_id))

    async def end(self) -> None:
        await self.stopping.ended()
        assert self.stopping.process.returncode in {0, -15}, self.programs.said()

    async def stands(self, run: str, *expected: str) -> None:
        """Return once a run's status and its reason are these."""
        query = "SELECT (status, status_reason) = ($2, $3) FROM executions WHERE execution_id = $1"
        await until(lambda: self.connection.fetchval(query, run, *expected))


async def sent_when_it_is_gone(scene: Scene) -> str:
    """The claim stands only once its instance has said goodbye."""
    run = await scene.claimed()
    await scene.stop()
    await scene.end()
    await scene.gates.open(Gate.DISPATCH_COMMIT)
    return run


async def refused_while_it_drains(scene: Scene) -> str:
    """It listens no more while a step of another run ends: what it refused is in the queue when it says goodbye."""
    may_end = scene.place / "may end"
    await start(scene.wire, "gated", gate=str(may_end))
    await until(lambda: in_a_step(scene.programs, scene.stopping))
    await until(lambda: settled(scene.connection))
    run = await scene.claimed()
    await scene.stop()
    await scene.gates.open(Gate.DISPATCH_COMMIT)
    await scene.stands(run, "queued", "dispatch_failed")
    await asyncio.to_thread(may_end.touch)
    await scene.end()
    return run


@pytest.mark.parametrize(
    ("happens", "handed_back"),
    [pytest.param(sent_when_it_is_gone, 0, id="gone"), pytest.param(refused_while_it_drains, 1, id="draining")],
)
async def test_what_a_stopping_instance_never_took_is_done_by_the_next(
    database: Database,
    connection: Any,
    second_connection: Any,
    tmp_path: Path,
    happens: Callable[[Scene], Awaitable[str]],
    handed_back: int,
):
    with planes(database.url) as (plane,), agents(tmp_path, connection) as programs:
        async with gates(database) as held:
            stopping = await programs.start(plane.url)
            scene = Scene(Wire(plane.url), held, programs, stopping, second_connection, tmp_path)
            run = await happens(scene)
            await until(lambda: connection.fetchval(LET_GO, run))
            await programs.start(plane.url)
            await scene.stands(run, "succeeded", "execution_finished")
            await until(lambda: settled(connection))
            await scene.wire.close()
    assert [fence for each, fence in taken(programs.reader.look()) if each == run] == [2]
    assert [deed.fence for deed in deeds(programs.reader.lines) if deed.run == run] == [2, 2]
    reasons = await released(connection, programs)
    assert (reasons["instance_gone"], reasons["handed_back"]) == (1, handed_back)
    assert await broken(connection) == []


async def in_a_step(programs: Agents, process: AgentProcess) -> bool:
    return bool(working(programs.reader.look(), [process.pid]))
