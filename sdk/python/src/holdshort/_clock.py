"""The time limit of a run: only work counts."""

import asyncio
from contextlib import suppress


class Clock:
    """A time limit that stands still while the run waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._scope: asyncio.Timeout | None = None
        self._left: float | None = None
        self._waits = 0

    def scope(self, seconds: float | None) -> asyncio.Timeout:
        """A scope that ends after so many seconds of work."""
        self._scope = asyncio.timeout(seconds)
        return self._scope

    @property
    def up(self) -> bool:
        """True when the time has passed."""
        return self._scope is not None and self._scope.expired()

    def run_out(self) -> None:
        """Let the time be up now, also while the run waits."""
        self._left = None
        self._move(self._loop.time())

    def stop(self) -> None:
        """Stand still for one more that waits."""
        self._waits += 1
        when = self._scope.when() if self._scope else None
        if when is not None:
            self._left = max(0.001, when - self._loop.time())
            self._move(None)

    def go_on(self) -> None:
        """One less waits; the time goes on with the last."""
        self._waits -= 1
        if self._left is not None and self._waits == 0:
            self._move(self._loop.time() + self._left)
            self._left = None

    def _move(self, when: float | None) -> None:
        # A task that the run left behind may still pause after its scope has ended; then there is nothing to move.
        with suppress(RuntimeError):
            if self._scope:
                self._scope.reschedule(when)
