"""One run of an agent's code: its counters, its notes, its time, and how its end is reported."""

import asyncio
import logging
import re
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any
from uuid import uuid4

import msgspec

from holdshort._errors import BadRequest
from holdshort._pauses import Key
from holdshort._session import Session
from holdshort._wire import Execution

_NOTES_S = 10.0
_LONGEST_NAME = 200
_LONGEST_ERROR = 65_536
# Some versions of Python give a comprehension a frame of its own; a run must find its ids again under any of them.
_COMPREHENSION = re.compile(r"(\.<locals>\.<(?:genexpr|listcomp|setcomp|dictcomp)>)+$")
log = logging.getLogger("holdshort")


class Rounds:
    """Counts asks under each id, and ids made for each function, from 1 on in start order: the same on every replay."""

    def __init__(self) -> None:
        self._asks: Counter[str] = Counter()
        self._names: Counter[str] = Counter()

    def made_id(self, qualified_name: str) -> str:
        """The next id made from the name of the function that asks."""
        name = _COMPREHENSION.sub("", qualified_name)[-_LONGEST_NAME:]
        self._names[name] += 1
        return f"pause:{name}:{self._names[name]}"

    def next(self, execution_id: str, approval_request_id: str) -> Key:
        """The key of the next ask under this id."""
        self._asks[approval_request_id] += 1
        return Key(execution_id, approval_request_id, self._asks[approval_request_id])

    @contextmanager
    def answered(self, key: Key) -> Iterator[None]:
        """While this round is asked; without an answer it is given back, so that trying again asks the same."""
        try:
            yield
        except BaseException:
            if self._asks[key.approval_request_id] == key.round:
                self._asks[key.approval_request_id] -= 1
            raise


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
        self._waiting: list[asyncio.Task[Any]] = []

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
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # coroutines wait in tasks
        self._clock.stop()
        self._waiting.append(task)
        try:
            yield
        finally:
            self._waiting.remove(task)
            self._clock.go_on()

    @contextmanager
    def leaving_nothing(self) -> Iterator[None]:
        """At the end, cancel the tasks in which the run's code still waits: nobody tells a run that is over."""
        try:
            yield
        finally:
            for task in self._waiting:
                task.cancel()

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
            except Exception as error:  # one note that cannot be kept must not take the others along
                log.warning("a note of %s was not kept: %s", self.execution_id, error)

    async def report(self, status: str, *, error: str | None = None) -> None:
        """Tell the control plane how the run ended, after its notes; `status` becomes what stands."""
        await self.flush()
        client = self.session.client
        if status != "succeeded":
            with suppress(Exception):  # why it ended matters more than what it had so far
                self.settle()
        try:
            standing = await client.report_status(self.execution_id, status, result=self.result, error=error)
        except BadRequest:
            if self.result is None or status == "succeeded":
                raise
            self.result = None
            standing = await client.report_status(self.execution_id, status, error=error)
        self.status, self.status_reason = standing.status, standing.status_reason

    def settle(self) -> None:
        """Make the result what JSON has of it, so that what cannot be stored fails in the run and not after it."""
        result, self.result = self.result, None
        self.result = msgspec.json.decode(msgspec.json.encode(result))

    async def flush(self) -> None:
        """Wait until the notes are kept, at most 10 s."""
        await asyncio.sleep(0)  # lets notes in that a thread has just handed over
        if self._teller is None:
            return
        _, late = await asyncio.wait((self._teller,), timeout=_NOTES_S)
        for task in late:
            task.cancel()
            log.warning("the last notes of %s were not kept in time", self.execution_id)


def said(error: BaseException) -> str:
    """An exception as text that can be stored: a run must be able to say why it failed, whatever its words are."""
    text = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    return text.encode(errors="replace").decode().replace("\0", "?")


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
