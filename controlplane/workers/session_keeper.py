"""Sessions that ended take the pages along that are open under them; what is past its time is ended for good."""

from controlplane.runtime import Runtime
from controlplane.services import sessions as service
from controlplane.storage import sessions

EVERY_SECONDS = 1.0
SWEEP_SECONDS = 5.0
BATCH = 200


class SessionKeeper:
    """Looks once a second at the sessions that a page is held open under, all in one query."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing looked at yet."""
        self._runtime = runtime
        self._swept: float | None = None

    async def step(self) -> float:
        """Review what is held open, keep when sessions were used, and every few seconds end those that are over."""
        await self._runtime.sessions.review()
        async with self._runtime.sessions.noting() as seen:
            if seen:
                async with self._runtime.transaction() as conn:
                    await sessions.note_seen(conn, seen)
        return await self._sweep()

    async def _sweep(self) -> float:
        now = self._runtime.monotonic()
        if self._swept is not None and now - self._swept < SWEEP_SECONDS:
            return EVERY_SECONDS
        async with self._runtime.transaction() as conn:
            ended = await service.sweep(conn, limit=BATCH)
        if ended == BATCH:
            return 0.0
        self._swept = now
        return EVERY_SECONDS
