"""A run's code is interrupted at its await by the very reason, which libraries take for the cancellation that it is."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, Generic, TypeVar

from holdshort._errors import ExecutionCancelled, HandedBack, RunEnded, StaleInstance, StepMismatch

T = TypeVar("T")


def _also_cancellation(kind: type[RunEnded]) -> type[RunEnded]:
    # A task group or a timeout that is told by anything but a cancellation leaves its children running.
    known = {"__doc__": kind.__doc__, "__module__": "holdshort"}
    return type(kind.__name__, (kind, asyncio.CancelledError), known)


_THROWN: dict[type[RunEnded], type[RunEnded]] = {
    kind: _also_cancellation(kind) for kind in (ExecutionCancelled, StaleInstance, StepMismatch, HandedBack)
}


class Interruptible(Generic[T]):
    """Awaits a coroutine; `interrupt` raises a RunEnded at its await, wherever that is.

    Args:
        coroutine: the run's code.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self._task: asyncio.Task[Any] | None = None
        self._reason: RunEnded | None = None

    def interrupt(self, reason: RunEnded) -> None:
        """Raise this at the await where the code is; called on its loop, once."""
        if self._task is None or self._task is asyncio.current_task():
            return  # the caller raises it right here
        self._reason = reason
        self._task.cancel()

    def __await__(self) -> Generator[Any, Any, T]:
        """As the coroutine's own, but for what a cancellation becomes."""
        self._task = asyncio.current_task()
        try:
            return (yield from self._driven())
        finally:
            self._task = None

    def _driven(self) -> Generator[Any, Any, T]:
        step: Callable[[], Any] = partial(self._coroutine.send, None)
        while True:
            try:
                awaited = step()
            except StopIteration as end:
                returned: T = end.value
                return returned
            try:
                yield awaited
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as error:
                step = partial(self._coroutine.throw, self._instead(error))
            else:
                step = partial(self._coroutine.send, None)

    def _instead(self, error: BaseException) -> BaseException:
        reason, self._reason = self._reason, None
        if reason is None:
            return error
        # The request to cancel is answered with this; what the code does next is not cancelled once more.
        if self._task is not None:
            self._task.uncancel()
        return self._thrown(reason) if isinstance(error, asyncio.CancelledError) else error

    @staticmethod
    def _thrown(reason: RunEnded) -> RunEnded:
        return reason.again(_THROWN.get(type(reason), type(reason)))
