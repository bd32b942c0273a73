"""Tasks that are known from their creation on: a task factory in front of whichever the loop has."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from typing import Any

# Sets in a new task's context what it inherits; what it returns is told the task that was made.
Heir = Callable[[Any], Callable[[Any], None] | None]


@contextmanager
def known(heir: Heir) -> Iterator[None]:
    """While in here, tasks of the running loop are created in a context that `heir` has set up.

    Args:
        heir: is called in the new task's own context, with its coroutine; None leaves the task as it is.
    """
    loop = asyncio.get_running_loop()
    standing = loop.get_task_factory()
    factory = standing if isinstance(standing, _Factory) else _Factory(standing, heir)
    loop.set_task_factory(factory)
    factory.users += 1
    try:
        yield
    finally:
        factory.users -= 1
        if not factory.users and loop.get_task_factory() is factory:
            loop.set_task_factory(factory.inner)


class _Factory:
    """Calls the loop's own factory in the new task's context.

    Args:
        inner: the factory that was there; None for asyncio's.
        heir: see `known`.
    """

    def __init__(self, inner: Any, heir: Heir) -> None:
        self.inner = inner
        self.users = 0
        self._heir = heir

    def __call__(self, loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> Any:
        given: Context | None = kwargs.get("context")
        if given is not None:
            # A context that its creator shares with others says nothing of this task.
            return self._make(loop, coro, kwargs)
        return copy_context().run(self._inheriting, loop, coro, kwargs)

    def _inheriting(self, loop: asyncio.AbstractEventLoop, coro: Any, kwargs: dict[str, Any]) -> Any:
        born = self._heir(coro)
        task = self._make(loop, coro, kwargs)
        if born is not None:
            born(task)
        return task

    def _make(self, loop: asyncio.AbstractEventLoop, coro: Any, kwargs: dict[str, Any]) -> Any:
        if self.inner is None:
            return asyncio.Task(coro, loop=loop, **kwargs)
        return self.inner(loop, coro, **kwargs)
