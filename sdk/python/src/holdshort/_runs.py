"""One run of an agent's code: its counters, its notes, its time, and how its end is reported."""

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

from holdshort._errors import HoldshortError
from holdshort._pauses import Key
from holdshort._session import Session
from holdshort._wire import Execution

_NOTES_S = 10.0
_LONGEST_NAME = 200
log = logging.getLogger("holdshort")


class Rounds:
    """Counts asks under each id, and ids made for each function, from 1 on in start order: the same on every replay."""

    def __init__(self) -> None:
        self._asks: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def made_id(self, qualified_name: str) -> str:
        """The next id made from the name of the function that asks."""
        name = qualified_name[-_LONGEST_NAME:]
        self._names[name] += 1
        return f"pause:{name}:{self._names[name]}"

    def next(self, execution_id: str, approval_request_id: str) -> Key:
        """The key of the next ask under this id."""
        self._asks[approval_request_id] += 1
        return Key(execution_id, approval_request_id, self._asks[approval_request_id])


class Run:
    """One run of an execution. Set `result` to any JSON; it is stored when the run ends.

    `execution_id` continues this run when it is started again; `status` is what the control plane said last.
    """

    def __init__(self, owner: object, session: Session, standing: Execution) -> None:
        self.owner = owner
        self.execution_id = standing.execution_id
        self.status = standing.status
        self.status_reason = standing.status_reason
        self.result: Any = None
        self.rounds = Rounds()
        self.session = session
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self._clock = _Clock(self.loop)
        self._notes: deque[tuple[str, Sequence[str]]] = deque()
        self._teller: asyncio.Task[None] | None = None

    def limit(self, seconds: float | None) -> asyncio.Timeout:
        """A scope that ends after so many seconds of work; waiting for people does not count."""
        return self._clock.scope(seconds)

    @property
    def out_of_time(self) -> bool:
        """True when its time limit has passed."""
        return self._clock.up

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop the clock of the time limit while the run waits for an answer."""
        self._clock.stop()
        try:
            yield
        finally:
            self._clock.go_on()

    def note(self, message: str, tags: Sequence[str]) -> None:
        """Keep a note, in order, in the background; callable from any thread."""
        self.loop.call_soon_threadsafe(self._note, message, tuple(tags))

    def _note(self, message: str, tags: Sequence[str]) -> None:
        self._notes.append((message, tags))
        if self._teller is None or self._teller.done():
            self._teller = self.loop.create_task(self._tell(), name="holdshort notes")

    async def _tell(self) -> None:
        while self._notes:
            message, tags = self._notes.popleft()
            try:
                await self.session.client.add_note(self.execution_id, message, note_id=f"note_{uuid4().hex}", tags=tags)
            except HoldshortError as error:
                log.warning("a note of %s was not kept: %s", self.execution_id, error)

    async def report(self, status: str, *, error: str | None = None) -> None:
        """Tell the control plane how the run ended, after its notes; `status` becomes what stands."""
        await self.flush()
        standing = await self.session.client.report_status(self.execution_id, status, result=self.result, error=error)
        self.status, self.status_reason = standing.status, standing.status_reason

    async def flush(self) -> None:
        """Wait until the notes are kept, at most 10 s."""
        await asyncio.sleep(0)  # lets notes in that a thread has just handed over
        if self._teller is None:
            return
        _, late = await asyncio.wait((self._teller,), timeout=_NOTES_S)
        for task in late:
            task.cancel()
            log.warning("the last notes of %s were not kept in time", self.execution_id)


class _Clock:
    """A time limit that stands still while the run waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._scope: asyncio.Timeout | None = None
        self._left: float | None = None
        self._waits = 0

    def scope(self, seconds: float | None) -> asyncio.Timeout:
        self._scope = asyncio.timeout(seconds)
        return self._scope

    @property
    def up(self) -> bool:
        return self._scope is not None and self._scope.expired()

    def stop(self) -> None:
        self._waits += 1
        when = self._scope.when() if self._scope else None
        if when is not None:
            self._left = max(0.001, when - self._loop.time())
            self._move(None)

    def go_on(self) -> None:
        self._waits -= 1
        if self._left is not None and self._waits == 0:
            self._move(self._loop.time() + self._left)
            self._left = None

    def _move(self, when: float | None) -> None:
        # A task that the run left behind may still pause after its scope has ended; then there is nothing to move.
        with suppress(RuntimeError):
            if self._scope:
                self._scope.reschedule(when)


current_run: ContextVar[Run | None] = ContextVar("holdshort_run", default=None)
