"""What PostgreSQL says, read over a connection of the demo's own: nothing that a server process only claims."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from controlplane.cli.demo.faults import NotSeen
from controlplane.storage import approvals, executions, history
from controlplane.storage.approvals import Shown
from controlplane.storage.engine import Connection, make_engine, transaction
from controlplane.storage.executions import Run
from controlplane.storage.history import Entry

SEE_SECONDS = 15.0
POLL_SECONDS = 0.01

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
        found = self._until(
            lambda conn: approvals.newest(conn, execution_id, request_id),
            lambda newest: newest is not None and (newest.status, newest.round) == (status, round_),
        )
        if found is None or (found.status, found.round) != (status, round_):
            there = f"{found.status} in round {found.round}" if found else "nothing"
            raise NotSeen(f"expected {request_id} of {execution_id} {status} in round {round_}; found {there}")
        return Read(found, time.monotonic())

    def execution(self, execution_id: str, status: str) -> Run:
        """Wait until an execution is in this status.

        Raises:
            NotSeen: not within 15 s; the message says what is there.
        """
        found = self._until(
            lambda conn: executions.get(conn, execution_id), lambda run: run is not None and run.status == status
        )
        if found is None or found.status != status:
            raise NotSeen(f"expected {execution_id} {status}; found {found.status if found else 'nothing'}")
        return found

    def history(self, approval_id: str) -> list[Entry]:
        """Everything that happened to one approval, oldest first."""
        return self._read(lambda conn: history.of_approval(conn, approval_id))

    def close(self) -> None:
        """Let go of the connection."""
        self._runner.run(self._engine.dispose())
        self._runner.close()

    def _until(self, look: Look[Value], done: Callable[[Value], bool]) -> Value:
        deadline = time.monotonic() + SEE_SECONDS
        while not done(found := self._read(look)) and time.monotonic() < deadline:
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
