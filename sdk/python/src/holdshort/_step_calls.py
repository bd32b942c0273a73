"""One call of step: what it does, and when another one is the same."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec


class Deed(NamedTuple):
    """What a call of `step` does under its name; `kind` is the type of its result."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    kind: Any

    def same(self) -> tuple[object, ...]:
        """Equal for calls of the same function with equal arguments, as they are now."""
        named = tuple((name, _as_it_is(value)) for name, value in sorted(self.kwargs.items()))
        return (self.function, tuple(map(_as_it_is, self.args)), named)

    def proof(self) -> str:
        """A digest of the arguments; "" where they do not tell the call from another one of its name."""
        try:
            given = msgspec.json.encode((self.args, self.kwargs), order="sorted")
        except Exception:  # whatever an argument may be
            return ""
        return sha256(given).hexdigest()[:12] if self.args or self.kwargs else ""

    async def perform(self) -> Any:
        """Call the function: on the loop when it is async, else in a thread, so that it never holds up the loop."""
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(type(self.function).__call__):
            return await self.function(*self.args, **self.kwargs)
        thread = _Thread(self._called)
        try:
            result = await asyncio.to_thread(thread.work)
        except asyncio.CancelledError:
            thread.leave()
            raise
        return await result if inspect.isawaitable(result) else result

    def perform_blocking(self, on_loop: Callable[[Callable[[], Any]], Any]) -> Any:
        """Call the function in this thread; what it returns to be awaited is awaited on the run's loop."""
        result = self._called()
        return on_loop(lambda: _outcome(result)) if inspect.isawaitable(result) else result

    def _called(self) -> Any:
        try:
            return self.function(*self.args, **self.kwargs)
        except StopIteration as error:  # a future refuses it
            raise RuntimeError(f"step {self.name!r} raised {error!r}") from error


class _Thread:
    """Calls a function whose coroutine, if it returns one, is closed when nobody is left to await it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._function = function
        self._returned: Any = None
        self._left = False

    def work(self) -> Any:
        self._returned = self._function()
        if self._left:
            self._close()
        return self._returned

    def leave(self) -> None:
        self._left = True
        self._close()

    def _close(self) -> None:
        if inspect.iscoroutine(self._returned):
            self._returned.close()


async def _outcome(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _as_it_is(value: Any) -> object:
    """The value as it is now, or at least which one it is."""
    try:
        return msgspec.json.encode(value)
    except Exception:  # whatever an argument may be
        return _Itself(value)


class _Itself:
    """Equal to nothing but the same object."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other._value is self._value

    __hash__ = None  # type: ignore[assignment]  # never looked up
