"""Waiting calls: one entry in memory each, no database connection, no task and no timer of their own making."""

import asyncio
from collections.abc import Iterable
from types import TracebackType

WOKEN_AT_ONCE = 200
IDS_PER_CALL = 50
LEAST_IDS = 10_000


class Wait:
    """A call that waits until one of its approvals is final. Enter it, then look, then `sleep`."""

    __slots__ = ("_hub", "_sleeper", "ids", "settled")

    def __init__(self, hub: "WaitHub", ids: tuple[str, ...]) -> None:
        """Made by `WaitHub.enter`."""
        self._hub = hub
        self._sleeper: asyncio.Future[None] | None = None
        self.ids = ids
        self.settled: list[str] = []

    def __enter__(self) -> "Wait":
        """From here on no end of one of the approvals is missed."""
        self._hub.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the hub."""
        self._hub.remove(self)

    async def sleep(self, seconds: float) -> None:
        """Return when one of the approvals is final, the hub closes, `wake` was called or the time has passed."""
        if self.settled or self._hub.closed:
            return
        self._sleeper = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._sleeper
        except TimeoutError:
            return
        finally:
            self._sleeper = None

    def wake(self) -> None:
        """End the sleep."""
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)


class WaitHub:
    """All waiting calls of a process, by the approvals that they wait for."""

    def __init__(self, limit: int) -> None:
        """Hold at most `limit` calls; a further one is answered at once instead of queueing.

        A call may name thousands of approvals, so these are bounded too: 50 a call on average, 10,000 at the least.
        """
        self._limit = limit
        self._most_ids = max(LEAST_IDS, limit * IDS_PER_CALL)
        self._waits: dict[str, set[Wait]] = {}
        self._count = 0
        self._ids = 0
        self.closed = False

    def __len__(self) -> int:
        """How many calls wait."""
        return self._count

    def enter(self, ids: Iterable[str]) -> Wait | None:
        """A wait for these approvals, to be entered; None when there are as many as may be, or at shutdown."""
        if self.closed or self._count >= self._limit:
            return None
        wait = Wait(self, tuple(dict.fromkeys(ids)))
        return wait if self._ids + len(wait.ids) <= self._most_ids else None

    def add(self, wait: Wait) -> None:
        """Take up a wait that is entered."""
        self._count += 1
        self._ids += len(wait.ids)
        for approval_id in wait.ids:
            self._waits.setdefault(approval_id, set()).add(wait)

    def remove(self, wait: Wait) -> None:
        """Let go of a wait that is left."""
        self._count -= 1
        self._ids -= len(wait.ids)
        for approval_id in wait.ids:
            others = self._waits.get(approval_id, set())
            others.discard(wait)
            if not others:
                self._waits.pop(approval_id, None)

    def settle(self, approval_ids: Iterable[str]) -> None:
        """Wake whoever waits for one of these approvals, which are final; many are woken a few at a time."""
        for approval_id in approval_ids:
            woken = list(self._waits.get(approval_id, ()))
            for wait in woken:
                wait.settled.append(approval_id)
            self._wake(woken)

    def _wake(self, waits: list[Wait]) -> None:
        for wait in waits[:WOKEN_AT_ONCE]:
            wait.wake()
        if len(waits) > WOKEN_AT_ONCE:
            # All in one turn of the loop, ten thousand would keep everyone else waiting for a second.
            asyncio.get_running_loop().call_soon(self._wake, waits[WOKEN_AT_ONCE:])

    def close(self) -> None:
        """Wake everyone and let nobody wait any more: the process is about to stop."""
        self.closed = True
        for waits in self._waits.values():
            for wait in waits:
                wait.wake()
