"""A pulse: wakes everyone who waits for it, and nobody misses a beat that came after they looked."""

import asyncio


class Pulse:
    """A broadcast inside one process, without content; whoever is woken looks for itself."""

    __slots__ = ("_beats", "_sleepers")

    def __init__(self) -> None:
        """No beat yet."""
        self._beats = 0
        self._sleepers: set[asyncio.Future[None]] = set()

    @property
    def mark(self) -> int:
        """Where the pulse stands; take it before looking, and wait after it."""
        return self._beats

    def beat(self) -> None:
        """Wake everyone who waits."""
        self._beats += 1
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)
        self._sleepers.clear()

    async def after(self, mark: int, seconds: float) -> bool:
        """Wait until there was a beat after `mark`, for `seconds` at most; False when the time passed first."""
        if self._beats != mark:
            return True
        sleeper = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            async with asyncio.timeout(seconds):
                await sleeper
        except TimeoutError:
            return False
        finally:
            self._sleepers.discard(sleeper)
        return True
