"""Plain functions in threads of their own, beside the event loop's pool.

The pool's few threads also look up host names, so they must not be taken by what runs for long; and a process that
stops waits for them, which it must not for work that nobody will see the end of.
"""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T], name: str) -> T:
    """Call a function in a new thread, in a copy of this context, and wait for what comes of it.

    Args:
        function: goes on when the wait is cancelled; its outcome is dropped then.
        name: of the thread.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except StopIteration as error:  # a future refuses it
            _tell(loop, _fail, done, RuntimeError(f"the function raised {error!r}"))
        except BaseException as error:  # whatever ends the thread is its outcome
            _tell(loop, _fail, done, error)
        else:
            _tell(loop, _succeed, done, result)

    threading.Thread(target=work, name=f"holdshort {name}", daemon=True).start()
    try:
        return await done
    except asyncio.CancelledError:
        if done.done() and not done.cancelled() and done.exception() is None:
            _drop(done.result())
        raise


def _tell(loop: asyncio.AbstractEventLoop, put: Callable[[Any, Any], None], done: Any, outcome: object) -> None:
    try:
        loop.call_soon_threadsafe(put, done, outcome)
    except RuntimeError:  # the loop is closed
        _drop(outcome)


def _succeed(done: "asyncio.Future[Any]", result: object) -> None:
    if done.done():
        _drop(result)
    else:
        done.set_result(result)


def _fail(done: "asyncio.Future[Any]", error: BaseException) -> None:
    if not done.done():
        done.set_exception(error)


def _drop(result: object) -> None:
    """Close a coroutine that nobody is left to await."""
    if inspect.iscoroutine(result):
        with suppress(ValueError):  # somebody began it
            result.close()
