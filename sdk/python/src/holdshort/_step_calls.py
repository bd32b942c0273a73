"""One call of step: what it does, and when another one is the same."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from holdshort._threads import in_thread


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

    async def perform(self, slots: asyncio.Semaphore | None = None) -> Any:
        """Call the function: on the loop when it is async, else in a thread, so that it never holds up the loop.

        Args:
            slots: bounds how many threads there are at a time.
        """
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(type(self.function).__call__):
            return await self.function(*self.args, **self.kwargs)
        async with slots or nullcontext():
            result = await in_thread(self._called, self.name)
        return await result if inspect.isawaitable(result) else result

    def perform_blocking(self, on_loop: Callable[[Callable[[], Any]], Any]) -> Any:
        """Call the function in this thread; what it returns to be awaited is awaited on the run's loop."""
        result = self._called()
        return on_loop(lambda: _outcome(result)) if inspect.isawaitable(result) else result

    def _called(self) -> Any:
        return self.function(*self.args, **self.kwargs)


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
