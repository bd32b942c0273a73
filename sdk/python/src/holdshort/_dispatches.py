"""Runs that the control plane gives to this process: taken at once, run in the background, each under its fence."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Struct

from holdshort import _errors
from holdshort._answers import Answered, invalid, not_meant, problem, stopping
from holdshort._reasoners import Reasoner
from holdshort._runner import Runner, is_cancelled
from holdshort._runs import FENCE_HEADER, Run, log
from holdshort._wire import Execution

EXECUTION_TIMEOUT = "execution_timeout"
_ENDING_S = 1.0
_REMEMBERED = 10_000


class Order(Struct, frozen=True, kw_only=True):
    """What a dispatch says of its run besides the input."""

    execution_id: str
    fence: int
    instance_id: str | None = None
    run_id: str | None = None
    parent_execution_id: str | None = None
    stored_steps: int | None = None
    time_left: float | None = None


class Holder(Protocol):
    """What keeps this process registered."""

    async def confirmed(self) -> None:
        """Return once this process surely holds its runs."""

    def hand_back(self, execution_id: str, fence: int) -> None:
        """Give up a run whose code has ended."""


class _Going(NamedTuple):
    """A run and the task that its code is in."""

    run: Run
    task: "asyncio.Task[None]"


def order_of(headers: Mapping[str, str], execution_id: str | None) -> Order | Answered | None:
    """The order in the headers of a call; None for one that is no dispatch, an answer to one that makes no sense."""
    if FENCE_HEADER not in headers:
        return None
    if execution_id is None:
        return invalid("X-Execution-ID", "required with X-Holdshort-Fence")
    steps, left = headers.get("x-holdshort-steps"), headers.get("x-holdshort-time-left")
    try:
        order = Order(
            execution_id=execution_id,
            fence=int(headers[FENCE_HEADER]),
            instance_id=headers.get("x-holdshort-instance"),
            run_id=headers.get("x-run-id"),
            parent_execution_id=headers.get("x-parent-execution-id"),
            stored_steps=int(steps) if steps else None,
            time_left=float(left) if left else None,
        )
    except ValueError:
        order = None
    if order is None or not isfinite(order.time_left or 0):
        return invalid("X-Holdshort-*", "fence and steps are integers, the time left is a number of seconds")
    return order


def cancellation_of(headers: Mapping[str, str], body: bytes) -> tuple[int, str] | Answered:
    """Fence and reason of a call that ends a run, or an answer to one that makes no sense."""
    try:
        reason = msgspec.json.decode(body or b"{}", type=dict[str, Any]).get("reason")
        return int(headers[FENCE_HEADER]), str(reason or "cancelled")
    except KeyError:
        return invalid("X-Holdshort-Fence", "required")
    except (ValueError, RecursionError):
        return invalid("X-Holdshort-Fence", 'an integer, with {"reason": ...} as the body')


class Dispatches:
    """The dispatched runs that are in progress here, by execution id; `instance_id` is what this process registers as.

    Args:
        agent: whose they are.
        reasoners: the agent's functions.
        holder: keeps this process registered; None while it is not.
    """

    def __init__(self, agent: Runner, reasoners: Mapping[str, Reasoner], holder: Callable[[], Holder | None]) -> None:
        self._agent = agent
        self._reasoners = reasoners
        self._holder = holder
        self.instance_id = ""
        self._going: dict[str, _Going] = {}
        # A dispatch whose answer was lost comes again, perhaps when its run is over.
        self._taken: OrderedDict[str, int] = OrderedDict()

    def __contains__(self, execution_id: str) -> bool:
        return execution_id in self._going

    def take(self, name: str, raw: Any, order: Order) -> Answered:
        """Begin a run, or let the one in progress go on under the new fence; answered before it has ended.

        Args:
            name: of the reasoner.
            raw: its input, decoded JSON.
            order: which run it is.
        """
        if self._agent.registry.draining:
            return stopping()
        if order.instance_id not in {None, self.instance_id}:
            return not_meant()
        accepted = Answered(202, {"status": "processing", "execution_id": order.execution_id})
        if order.fence <= self._taken.get(order.execution_id, -1):
            return accepted
        going = self._going.get(order.execution_id)
        if going is not None and going.run.end is None:
            going.run.fence = order.fence
        else:
            reasoner = self._reasoners.get(name)
            if reasoner is None:
                return problem(404, "reasoner_not_found", f"there is no reasoner {name!r} here")
            try:
                arguments = reasoner.arguments(raw)
            except _errors.InvalidInput as fault:
                return invalid(fault.field, fault.rule)
            self._begin(reasoner, arguments, raw, order)
        self._remember(order)
        return accepted

    def cancel(self, execution_id: str, fence: int, reason: str) -> Answered:
        """End a run that is over for the control plane.

        Args:
            execution_id: of the run.
            fence: of the dispatch that is over.
            reason: "execution_timeout" ends it as its own time limit does, anything else as cancelled.
        """
        going = self._going.get(execution_id)
        if going is None:
            return problem(404, "execution_not_found", f"execution {execution_id} is not running here")
        run = going.run
        if run.fence is not None and fence < run.fence:
            return problem(409, _errors.StaleInstance.code, "the run was dispatched again since", fence=run.fence)
        if reason == EXECUTION_TIMEOUT:
            run.run_out_of_time()
        else:
            message = f"execution {execution_id} was cancelled: {reason}"
            run.interrupt(_errors.ExecutionCancelled(message, details={"status_reason": reason}))
        return Answered(202, {"status": "cancelling", "execution_id": execution_id})

    def let_go(self) -> None:
        """End what waits: the control plane took this process for gone, and gives it to whom it likes when decided."""
        for going in list(self._going.values()):
            if going.run.waits:
                going.run.interrupt(_errors.HandedBack("this process counted as gone; the run goes on when decided"))

    async def finish(self, seconds: float) -> None:
        """Let what runs end, so many seconds; what has not ended then is stopped without an end."""
        await self._until_ended(seconds)
        for going in list(self._going.values()):
            going.run.interrupt(_errors.HandedBack())
        await self._until_ended(_ENDING_S)
        for going in list(self._going.values()):
            going.task.cancel()
        await self._until_ended(_ENDING_S)

    async def _until_ended(self, seconds: float) -> None:
        tasks = [going.task for going in self._going.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _begin(self, reasoner: Reasoner, arguments: dict[str, Any], raw: Any, order: Order) -> None:
        standing = Execution(
            execution_id=order.execution_id,
            node_id=self._agent.node_id,
            status="running",
            run_id=order.run_id,
            parent_execution_id=order.parent_execution_id,
            reasoner=reasoner.name,
            input=raw,
        )
        session = self._agent.sessions.enter()
        run = Run(self._agent, session, standing, fence=order.fence, stored_steps=order.stored_steps)
        run.confirmed = self._confirmed
        seconds = reasoner.timeout_seconds if order.time_left is None else order.time_left
        before = self._going.get(order.execution_id)
        work = self._work(run, reasoner, arguments, seconds=seconds, before=before)
        task = asyncio.create_task(work, name=f"holdshort {reasoner.name}")
        self._going[order.execution_id] = _Going(run, task)
        task.add_done_callback(lambda _: self._left(run))

    async def _work(
        self, run: Run, reasoner: Reasoner, arguments: dict[str, Any], *, seconds: float | None, before: _Going | None
    ) -> None:
        try:
            if before is not None:
                # Taken over, and given back to this very process: its code is let end before it begins anew.
                await asyncio.wait((before.task,), timeout=_ENDING_S)
            async with self._agent.running(run), run.limit(seconds):
                run.check()
                work = reasoner.call(arguments)
                run.result = await (work if reasoner.plain else run.code(work))
        except _errors.HandedBack:
            self._handed_back(run)
        except asyncio.CancelledError:
            if is_cancelled():
                # Stopped while it told its end. If that was not heard it ends elsewhere, else there is nothing to take.
                self._handed_back(run)
            raise
        except _errors.StaleInstance as end:
            log.warning("run %s ended here: %s", run.execution_id, end)
        except _errors.RunEnded as end:
            log.info("run %s ended: %s", run.execution_id, end)
        except Exception as error:  # nobody waits for it: this is where it is said
            log.warning("run %s of %s failed", run.execution_id, reasoner.name, exc_info=error)
        finally:
            await self._agent.sessions.leave()

    def _handed_back(self, run: Run) -> None:
        if (holder := self._holder()) and run.fence is not None:
            holder.hand_back(run.execution_id, run.fence)

    def _left(self, run: Run) -> None:
        going = self._going.get(run.execution_id)
        if going is not None and going.run is run:
            del self._going[run.execution_id]

    def _remember(self, order: Order) -> None:
        self._taken[order.execution_id] = order.fence
        self._taken.move_to_end(order.execution_id)
        while len(self._taken) > max(_REMEMBERED, 2 * len(self._going)):
            self._taken.popitem(last=False)

    async def _confirmed(self) -> None:
        if holder := self._holder():
            await holder.confirmed()
