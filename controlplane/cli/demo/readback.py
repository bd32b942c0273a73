"""What PostgreSQL says, read over a connection of the demo's own: nothing that a server process only claims."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from controlplane.cli.demo.faults import NotSeen
from controlplane.domain.feedback import Question
from controlplane.domain.nodes import Instance, InstanceStatus
from controlplane.storage import approvals, executions, feedback, history, nodes, steps
from controlplane.storage.approvals import Shown
from controlplane.storage.engine import Connection, make_engine, transaction
from controlplane.storage.executions import Run
from controlplane.storage.history import Entry

SEE_SECONDS = 15.0
POLL_SECONDS = 0.02
MOST_STEPS = 200

Value = TypeVar("Value")
Look = Callable[[Connection], Awaitable[Value]]


class Read(NamedTuple):
    """An approval as it was read, and when (`time.monotonic`)."""

    approval: Shown
    at: float


class Database:
    """Reads of one database over one connection, one at a time; `close` it.

    Args:
        url: `postgresql://...`.
    """

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._engine = make_engine(url, pool_size=1)

    def approval(self, execution_id: str, request_id: str, status: str, *, round_: int = 1) -> Read:
        """Wait until an approval's newest round is this one, in this status.

        Raises:
            NotSeen: not within 15 s; the message says what is there.
        """
        found = self._seen(
            lambda conn: approvals.newest(conn, execution_id, request_id),
            lambda newest: (newest.status, newest.round) == (status, round_),
            f"{request_id} of {execution_id} {status} in round {round_}",
            lambda newest: f"{newest.status} in round {newest.round}",
        )
        return Read(found, time.monotonic())

    def execution(self, execution_id: str, status: str) -> Run:
        """Wait until an execution is in this status.

        Raises:
            NotSeen: not within 15 s; the message says what is there.
        """
        return self._run(execution_id, lambda run: run.status == status, str(status))

    def taken(self, execution_id: str) -> Run:
        """Wait until an execution is in an agent's hands.

        Raises:
            NotSeen: not within 15 s.
        """
        return self._run(execution_id, lambda run: run.instance_id is not None, "in an agent's hands")

    def outcome(self, execution_id: str) -> Run:
        """Wait until an execution is over, and its code has seen that too.

        Raises:
            NotSeen: not within 15 s.
        """
        return self._run(execution_id, lambda run: run.final and not run.outcome_pending, "over")

    def run(self, execution_id: str) -> Run:
        """An execution as it stands.

        Raises:
            NotSeen: there is none.
        """
        return self._run(execution_id, lambda _: True, "there")

    def steps(self, execution_id: str) -> list[str]:
        """The names of what an execution has done so far."""
        found, _ = self._read(lambda conn: steps.page(conn, execution_id, after=0, limit=MOST_STEPS))
        return [step.name for step in found]

    def instance(self, node_id: str, base_url: str) -> str:
        """Wait until an agent's process is registered at this address; its instance's id.

        Raises:
            NotSeen: not within 15 s.
        """

        def at(found: list[Instance]) -> list[str]:
            live = [each for each in found if each.status is InstanceStatus.LIVE]
            return [each.instance_id for each in live if each.base_url == base_url]

        found = self._seen(
            lambda conn: nodes.instances_there(conn, [node_id]),
            lambda found: bool(at(found)),
            f"{node_id} registered at {base_url}",
            lambda found: [each.base_url for each in found],
        )
        return at(found)[0]

    def history(self, approval_id: str) -> list[Entry]:
        """Everything that happened to one approval, oldest first."""
        return self._read(lambda conn: history.of_approval(conn, approval_id))

    def question(self, unique_id: str) -> Question:
        """Wait until a short-lived question waits for its answer.

        Raises:
            NotSeen: not within 15 s.
        """
        return self._seen(
            lambda conn: feedback.pending(conn, [unique_id]), bool, f"{unique_id} pending", lambda _: "no such question"
        )[0]

    def close(self) -> None:
        """Let go of the connection."""
        self._runner.run(self._engine.dispose())
        self._runner.close()

    def _run(self, execution_id: str, holds: Callable[[Run], bool], expected: str) -> Run:
        return self._seen(
            lambda conn: executions.get(conn, execution_id),
            holds,
            f"{execution_id} {expected}",
            lambda run: f"{run.status} ({run.error or run.status_reason})",
        )

    def _seen(
        self,
        look: Look[Value | None],
        holds: Callable[[Value], bool],
        expected: str,
        said: Callable[[Value], object],
    ) -> Value:
        deadline = time.monotonic() + SEE_SECONDS
        while (found := self._read(look)) is None or not holds(found):
            if time.monotonic() > deadline:
                raise NotSeen(f"expected {expected}; found {'nothing' if found is None else said(found)}")
            time.sleep(POLL_SECONDS)
        return found

    def _read(self, look: Look[Value]) -> Value:
        async def inside() -> Value:
            async with transaction(self._engine) as conn:
                return await look(conn)

        return self._runner.run(inside())


@contextmanager
def reading(url: str) -> Iterator[Database]:
    """Read a database for the length of a block."""
    database = Database(url)
    try:
        yield database
    finally:
        database.close()
