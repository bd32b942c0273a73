"""Agent programs as processes: started, killed, stopped and frozen."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.durability import working_agent
from tests.durability.journal import Reader
from tests.durability.plane import free_port, until

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0
END_SECONDS = 60.0


class AgentProcess:
    """One process of `working_agent`; `instance_id` once it has registered."""

    def __init__(self, url: str, place: Path, port: int, dies: str) -> None:
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}"
        self.instance_id = ""
        self._said = (place / "agents.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", working_agent.__name__, url, str(port), str(place / "journal"), dies],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"]},
            stdout=self._said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    async def kill(self) -> None:
        """SIGKILL: nothing of it runs any more."""
        self.process.kill()
        await self.ended()

    async def terminate(self) -> None:
        """SIGTERM, and wait until it has ended."""
        self.process.terminate()
        await self.ended()

    async def ended(self) -> None:
        await asyncio.to_thread(self.process.wait, END_SECONDS)

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.alive:
            self.process.kill()
        self.process.wait()
        self._said.close()


class Agents:
    """All processes of a test's agent program, with their common journal."""

    def __init__(self, place: Path, connection: Any) -> None:
        self.started: list[AgentProcess] = []
        self.reader = Reader(place / "journal")
        self._place = place
        self._connection = connection

    @property
    def alive(self) -> list[AgentProcess]:
        return [process for process in self.started if process.alive]

    @property
    def ended(self) -> set[int]:
        """The processes that are over."""
        return {process.pid for process in self.started if not process.alive}

    def launch(self, url: str, *, port: int | None = None, dies: str = "-") -> AgentProcess:
        """Start a process, on a free port unless one is given."""
        process = AgentProcess(url, self._place, port or free_port(), dies)
        self.started.append(process)
        return process

    async def start(self, url: str, *, port: int | None = None, dies: str = "-") -> AgentProcess:
        """Start a process, and wait until it is an instance of its node."""
        before = [row["instance_id"] for row in await self._connection.fetch("SELECT instance_id FROM instances")]
        process = self.launch(url, port=port, dies=dies)
        query = "SELECT instance_id FROM instances WHERE base_url = $1 AND NOT instance_id = ANY ($2)"

        async def registered() -> bool:
            assert process.alive, self.said()
            process.instance_id = await self._connection.fetchval(query, process.base_url, before) or ""
            return bool(process.instance_id)

        await until(registered, seconds=START_SECONDS)
        return process

    async def lose(self, process: AgentProcess) -> None:
        """Let the lease of a process pass now, rather than in a while."""
        await lose(self._connection, process.instance_id)

    def said(self) -> str:
        """What all of them have logged."""
        return (self._place / "agents.log").read_text(errors="replace")


async def lose(connection: Any, instance_id: str) -> None:
    """Let an instance's lease pass now; a short one, so that no server need have watched it for long."""
    await connection.execute(
        "UPDATE instances SET lease_until = clock_timestamp(), lease_seconds = 1 WHERE instance_id = $1", instance_id
    )


@contextmanager
def agents(place: Path, connection: Any) -> Iterator[Agents]:
    """No process yet; whichever is left at the end of the block is killed."""
    made = Agents(place, connection)
    try:
        yield made
    finally:
        for process in made.started:
            process.close()
