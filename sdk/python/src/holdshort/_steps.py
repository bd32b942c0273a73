"""Steps of one run: done once, stored before they are returned, and found again when the run is started again."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from holdshort import _routes
from holdshort._errors import ExecutionFinished, NoExecution, StepMismatch
from holdshort._step_book import Book, Place, kept_at, proof_of
from holdshort._step_calls import Deed
from holdshort._step_chains import Chain, Chains, Ticket
from holdshort._step_results import decoded, encoded
from holdshort._wire import Step, ended_by_approval

if TYPE_CHECKING:
    from holdshort._runs import Run

_THREADS = 64
log = logging.getLogger("holdshort")


class Steps:
    """The steps of a run.

    Args:
        run: that they belong to.
    """

    def __init__(self, run: "Run") -> None:
        self._run = run
        self._book = Book()
        self._chains = Chains(self._book, Steps.do.__code__)
        self._lock = threading.Lock()
        self._opening = asyncio.Lock()
        self._slots = asyncio.Semaphore(_THREADS)
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
                self._book.close()

    def moved_here(self) -> None:
        """Go on in this thread, in which the run's plain function is called."""
        self._chains.moved_here()

    def pausing(self, approval_request_id: str) -> None:
        """Note what a new task does first: it is known by the question that it asks."""
        self._chains.here(f"?{approval_request_id}")

    def called(self, deed: Deed) -> Ticket | None:
        """A ticket for this call; None inside another step, which it is a part of."""
        return None if self._chains.inside else self._chains.call(deed)

    async def do(self, ticket: Ticket) -> Any:
        """The step's stored result, after doing it if there is none."""
        deed, (chain, alone) = ticket.deed, self._chains.awaited(ticket)
        with self._working():
            await self._ready()
            place = chain.place_of(deed)
            step, wanted = self._find(place, deed)
            if step is None:
                with self._raising(chain, ticket, place, alone=alone), self._chains.within():
                    step = await self._keep(deed, wanted, await deed.perform(self._slots))
            return self._done(chain, place, step, deed)

    def do_blocking(self, ticket: Ticket) -> Any:
        """As `do`, in the thread of a plain function."""
        deed, (chain, alone) = ticket.deed, self._chains.awaited(ticket)
        if not self._opened or self._run.confirmed is not None:
            self._run.blocking(self._ready)
        place = chain.place_of(deed)
        step, wanted = self._find(place, deed)
        if step is None:
            with self._raising(chain, ticket, place, alone=alone), self._chains.within():
                result = deed.perform_blocking(self._run.blocking)
                step = self._run.blocking(lambda: self._keep(deed, wanted, result))
        return self._done(chain, place, step, deed)

    async def _ready(self) -> None:
        """Be sure that this process holds the run, and read what is stored: once, and only when there may be some."""
        with self._working():
            await self._run.sure()
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

    def _find(self, place: Place, deed: Deed) -> tuple[Step | None, Step]:
        """The stored step, if there is one, and what a new one is to be kept as; its number is taken at its start."""
        self._run.check()
        proof = deed.proof()
        try:
            step = self._book.find(place, deed.name, proof)
        except StepMismatch as end:
            # The whole run ends, also where the code gathers the errors of its tasks and goes on.
            if self._run.on_loop:
                self._run.interrupt(end)
            else:
                self._run.ended(end)
            raise
        if step is not None and proof and proof_of(step) not in {"", proof}:
            told = "the stored result of step %r of %s was made with other arguments than this call has"
            log.warning(told, deed.name, self._run.execution_id)
        with self._lock:
            occurrence = step.occurrence if step else self._book.number(place, deed.name)
        return step, Step(name=deed.name, occurrence=occurrence, position=0, previous=kept_at(place, proof))

    async def _keep(self, deed: Deed, wanted: Step, result: Any) -> Step:
        """Store a result before anybody sees it; of two results the first stands."""
        raw = encoded(deed.name, result)
        plain = msgspec.json.decode(raw)
        decoded(deed.name, plain, deed.kind)
        call = _routes.keep_step(
            self._run.execution_id,
            deed.name,
            msgspec.Raw(raw),
            occurrence=wanted.occurrence,
            previous=wanted.previous,
        )
        with self._working():
            try:
                return await self._run.send(call)
            except ExecutionFinished as over:
                if not ended_by_approval(over.details.get("execution_status"), over.details.get("status_reason")):
                    raise
                log.warning("step %r of %s was done but not kept: %s", deed.name, self._run.execution_id, over)
                return msgspec.structs.replace(wanted, result=plain)

    def _done(self, chain: Chain, place: Place, step: Step, deed: Deed) -> Any:
        with self._lock:
            behind = self._book.done(place, step)
        self._chains.done(chain, behind)
        return decoded(deed.name, step.result, deed.kind)

    @contextmanager
    def _raising(self, chain: Chain, ticket: Ticket, place: Place, *, alone: bool) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._chains.raised(chain, ticket, place, alone=alone)
            raise

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
