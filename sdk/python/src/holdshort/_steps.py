"""Steps of one run: done once, stored before they are returned, and found again when the run is started again."""

import asyncio
import inspect
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import msgspec

from holdshort import _routes
from holdshort._errors import ExecutionFinished, NoExecution, StepMismatch
from holdshort._step_book import Book, Place
from holdshort._step_chains import Chain, Chains, Deed, Ticket
from holdshort._step_results import decoded, encoded
from holdshort._wire import Step, ended_by_approval

if TYPE_CHECKING:
    from holdshort._runs import Run

log = logging.getLogger("holdshort")
_inside: ContextVar["Steps | None"] = ContextVar("holdshort_inside_step", default=None)


class Steps:
    """The steps of a run.

    Args:
        run: that they belong to.
    """

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._book = Book()
        self._chains = Chains(self._book)
        self._lock = threading.Lock()
        self._opening = asyncio.Lock()
        self._opened = False
        self._over = False
        self._busy: set[asyncio.Task[Any]] = set()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """While the run's code is in the run; what it left behind afterwards does no more steps."""
        with self._chains.begun():
            try:
                yield
            finally:
                self._over = True
                for task in self._busy:
                    task.cancel()

    def moved_here(self) -> None:
        """Go on in this thread, in which the run's plain function is called."""
        self._chains.moved_here()

    def pausing(self, approval_request_id: str) -> None:
        """Note what a new task does first: it is known by the question that it asks."""
        self._chains.here(f"?{approval_request_id}")

    def called(self, deed: Deed) -> Ticket | None:
        """A ticket for this call; None inside another step, which it is a part of."""
        return None if _inside.get() is self else self._chains.called(deed)

    async def do(self, ticket: Ticket) -> Any:
        """The step's stored result, after doing it if there is none."""
        deed, chain = ticket.deed, self._chains.awaited(ticket)
        with self._working():
            if not self._opened:
                await self._open()
            place = chain.place_of(deed)
            step = self._find(place, deed.name)
            if step is None:
                with self._raising(chain, ticket, place), self._part_of_it():
                    step = await self._keep(deed, place, await perform(deed))
            return self._done(chain, place, step, deed)

    def do_blocking(self, ticket: Ticket) -> Any:
        """As `do`, in the thread of a plain function."""
        deed, chain = ticket.deed, self._chains.awaited(ticket)
        if not self._opened:
            self._run.blocking(self._open)
        place = chain.place_of(deed)
        step = self._find(place, deed.name)
        if step is None:
            with self._raising(chain, ticket, place), self._part_of_it():
                result = perform_blocking(deed, self._run.blocking)
                step = self._run.blocking(lambda: self._keep(deed, place, result))
        return self._done(chain, place, step, deed)

    async def _open(self) -> None:
        """Read what is stored, once, and only when there may be something."""
        with self._working():
            async with self._opening:
                if not self._opened:
                    self._book.open([step async for step in self._stored()])
                    self._opened = True

    async def _stored(self) -> AsyncIterator[Step]:
        after: int | None = 0
        while after is not None and self._run.stored_steps != 0:
            page = await self._run.send(_routes.list_steps(self._run.execution_id, after=after))
            for step in page.steps:
                yield step
            after = page.next_after

    def _find(self, place: Place, name: str) -> Step | None:
        self._run.check()
        try:
            return self._book.find(place, name)
        except StepMismatch as end:
            # The whole run ends, also where the code gathers the errors of its tasks and goes on.
            if self._run.on_loop:
                self._run.interrupt(end)
            self._run.ended(end)
            raise

    async def _keep(self, deed: Deed, place: Place, result: Any) -> Step:
        """Store a result before anybody sees it; of two results the first stands."""
        raw = encoded(deed.name, result)
        decoded(deed.name, msgspec.json.decode(raw), deed.kind)
        with self._lock:
            occurrence = self._book.number(place, deed.name)
        call = _routes.keep_step(
            self._run.execution_id, deed.name, msgspec.Raw(raw), occurrence=occurrence, previous=place.here
        )
        with self._working():
            try:
                return await self._run.send(call)
            except ExecutionFinished as over:
                if not ended_by_approval(over.details.get("execution_status"), over.details.get("status_reason")):
                    raise
                log.warning("step %r of %s was done but not kept: %s", deed.name, self._run.execution_id, over)
                plain = msgspec.json.decode(raw)
                return Step(name=deed.name, occurrence=occurrence, position=0, previous=place.here, result=plain)

    def _done(self, chain: Chain, place: Place, step: Step, deed: Deed) -> Any:
        with self._lock:
            behind = self._book.done(place, step)
        self._chains.done(chain, behind)
        return decoded(deed.name, step.result, deed.kind)

    @contextmanager
    def _raising(self, chain: Chain, ticket: Ticket, place: Place) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._chains.raised(chain, ticket, place)
            raise

    @contextmanager
    def _part_of_it(self) -> Iterator[None]:
        """What the step does itself is no step of its own."""
        token = _inside.set(self)
        try:
            yield
        finally:
            _inside.reset(token)

    @contextmanager
    def _working(self) -> Iterator[None]:
        """While a task does a step; it is cancelled when the run ends without it."""
        if self._over:
            raise NoExecution("this run is over; await its steps before it returns")
        task = asyncio.current_task()
        mine = task not in self._busy
        if task is not None:
            self._busy.add(task)
        try:
            yield
        finally:
            if task is not None and mine:
                self._busy.discard(task)


async def perform(deed: Deed) -> Any:
    """Call the function: on the loop when it is async, else in a thread, so that it never holds up the loop."""
    if inspect.iscoroutinefunction(deed.function):
        return await deed.function(*deed.args, **deed.kwargs)
    result = await asyncio.to_thread(_called, deed)
    return await result if inspect.isawaitable(result) else result


def perform_blocking(deed: Deed, on_loop: Callable[[Callable[[], Any]], Any]) -> Any:
    """Call the function in this thread; what it returns to be awaited is awaited on the run's loop."""
    result = _called(deed)
    if not inspect.isawaitable(result):
        return result
    return on_loop(lambda: _outcome(result))


def _called(deed: Deed) -> Any:
    try:
        return deed.function(*deed.args, **deed.kwargs)
    except StopIteration as error:  # a future refuses it
        raise RuntimeError(f"step {deed.name!r} raised {error!r}") from error


async def _outcome(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
