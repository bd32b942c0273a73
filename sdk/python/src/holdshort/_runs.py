"""One run of an agent's code: under which fence it calls, what ends it, and how its end is reported."""

import asyncio
import concurrent.futures
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import EllipsisType
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from holdshort import _routes
from holdshort._clock import Clock
from holdshort._core import Call
from holdshort._errors import (
    BadRequest,
    ExecutionCancelled,
    HandedBack,
    NoExecution,
    RunEnded,
    StaleInstance,
    StepMismatch,
)
from holdshort._interrupt import Interruptible
from holdshort._notes import Notes
from holdshort._rounds import Rounds
from holdshort._session import Session
from holdshort._steps import Steps
from holdshort._wire import Execution

FENCE_HEADER = "x-holdshort-fence"
_LONGEST_ERROR = 65_536
T = TypeVar("T")
log = logging.getLogger("holdshort")


class Run:
    """One run of an execution. Set `result` to any JSON; it is stored when the run ends.

    `execution_id` continues this run when it is started again; `status` is what the control plane said last.
    """

    def __init__(
        self,
        owner: object,
        session: Session,
        standing: Execution,
        *,
        fence: int | None = None,
        stored_steps: int | None = None,
    ) -> None:
        self.owner = owner
        self.execution_id = standing.execution_id
        self.status = standing.status
        self.status_reason = standing.status_reason
        self.result: Any = None
        self.rounds = Rounds()
        self.session = session
        self.fence = fence
        self.stored_steps = stored_steps
        self.steps = Steps(self)
        self.end: RunEnded | None = None
        self.loop = asyncio.get_running_loop()
        self.thread = threading.get_ident()
        self.confirmed: Callable[[], Awaitable[None]] | None = None
        self._clock = Clock(self.loop)
        self._notes = Notes(self.execution_id, self._keep_note)
        self._code: Interruptible[Any] | None = None
        self._waiting: list[asyncio.Task[Any]] = []

    async def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call of this run, under its fence.

        Raises:
            StaleInstance: another instance took the run over; that ends it.
        """
        while True:
            fence = self.fence
            try:
                return await self.session.client.send(self._fenced(call), patience=patience)
            except StaleInstance as stale:
                # Dispatched to this process again while the call was on its way: then it holds the run after all.
                if self.fence == fence:
                    self.interrupt(stale)
                    raise

    def _fenced(self, call: Call[T]) -> Call[T]:
        if self.fence is None:
            return call
        return msgspec.structs.replace(call, headers={**call.headers, FENCE_HEADER: str(self.fence)})

    async def code(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the run's code so that `interrupt` reaches it wherever it waits."""
        code = Interruptible(work)
        self._code = code
        try:
            return await code
        finally:
            self._code = None

    def interrupt(self, end: RunEnded) -> None:
        """End the run with this reason, at the await where its code is; a thread's next call here raises it.

        The first reason stands: what the code does to clean up is not interrupted again.
        """
        if self.ended(end):
            return
        if self._code is not None:
            self._code.interrupt(end)
        for task in () if self._code else self._waiting:
            task.cancel()

    def ended(self, end: RunEnded) -> bool:
        """Remember why the run ends; True when it did so already."""
        before, self.end = self.end, self.end or end
        return before is not None

    def check(self) -> None:
        """Raise what ended this run: what goes on of its code gets no further."""
        if self.end is not None:
            raise self.end.again()

    def blocking(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await something on the run's loop, from the thread of a plain function.

        Args:
            work: called here, awaited there.

        Raises:
            NoExecution: called on the loop itself.
            RunEnded: the run is over.
        """
        if self.on_loop:
            raise NoExecution("this would block the event loop it waits for; await its async form here")
        self.check()
        try:
            return asyncio.run_coroutine_threadsafe(work(), self.loop).result()
        except concurrent.futures.CancelledError:
            # An Exception, which the function might swallow and go on.
            raise (self.end or ExecutionCancelled("this run is over, its time too")).again() from None

    @property
    def on_loop(self) -> bool:
        """True in the thread of the run's event loop."""
        return threading.get_ident() == self.thread

    async def sure(self) -> None:
        """Return once this process surely holds the run: an answer must not wake one that was taken over."""
        if self.confirmed is not None:
            await self.confirmed()
            self.check()

    def limit(self, seconds: float | None) -> asyncio.Timeout:
        """A scope that ends after so many seconds of work; waiting for people does not count."""
        return self._clock.scope(seconds)

    def run_out_of_time(self) -> None:
        """Let its time limit pass now, also while it waits."""
        self._clock.run_out()

    @property
    def out_of_time(self) -> bool:
        """True when its time limit has passed."""
        return self._clock.up

    @property
    def waits(self) -> bool:
        """True while its code waits for an answer."""
        return bool(self._waiting)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop the clock of the time limit while the run waits for an answer."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101  # coroutines wait in tasks
        self.check()
        self._clock.stop()
        self._waiting.append(task)
        try:
            yield
        except RunEnded as end:
            self.ended(end)
            raise
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

    @contextmanager
    def given_away(self) -> Iterator[None]:
        """Whatever its code made of being handed back, taken over or led astray: it ends with that."""
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(self.end, HandedBack | StaleInstance | StepMismatch):
                raise self.end.again() from error
            raise
        if isinstance(self.end, HandedBack | StaleInstance | StepMismatch):
            raise self.end.again()

    def note(self, message: str, tags: Sequence[str]) -> None:
        """Keep a note, in order, in the background; callable from any thread."""
        self.loop.call_soon_threadsafe(self._notes.add, message, tuple(tags))

    async def _keep_note(self, message: str, tags: Sequence[str]) -> None:
        await self.send(_routes.add_note(self.execution_id, message, note_id=f"note_{uuid4().hex}", tags=tags))

    async def report(self, status: str, *, error: str | None = None, reason: str | None = None) -> None:
        """Tell the control plane how the run ended, after its notes; `status` becomes what stands."""
        await self._notes.flush()
        if status != "succeeded":
            with suppress(Exception):  # why it ended matters more than what it had so far
                self.settle()
        try:
            standing = await self._report(status, error, reason)
        except BadRequest:
            if self.result is None or status == "succeeded":
                raise
            self.result = None
            standing = await self._report(status, error, reason)
        self.status, self.status_reason = standing.status, standing.status_reason

    async def _report(self, status: str, error: str | None, reason: str | None) -> Execution:
        told = _routes.report_status(self.execution_id, status, result=self.result, error=error, reason=reason)
        return await self.send(told)

    def settle(self) -> None:
        """Make the result what JSON has of it, so that what cannot be stored fails in the run and not after it."""
        result, self.result = self.result, None
        self.result = msgspec.json.decode(msgspec.json.encode(result))


def said(error: BaseException) -> str:
    """An exception as text that can be stored: a run must be able to say why it failed, whatever its words are."""
    text = f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
    return text.encode(errors="replace").decode().replace("\0", "?")


current_run: ContextVar[Run | None] = ContextVar("holdshort_run", default=None)
