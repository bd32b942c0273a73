"""Keeps standing the short-lived questions that a call of this process waits for."""

from controlplane.domain.feedback import RENEW_SECONDS
from controlplane.runtime import Runtime
from controlplane.storage import feedback

BATCH = 1_000


class AskerKeeper:
    """Says every 5 s which questions somebody waits for here."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing said yet."""
        self._runtime = runtime
        self._next = runtime.monotonic()

    async def step(self) -> float:
        """Renew what is waited for, when it is time."""
        if self._runtime.monotonic() < self._next:
            return self._next - self._runtime.monotonic()
        waiting = self._runtime.askers.unique_ids()
        for first in range(0, len(waiting), BATCH):
            async with self._runtime.transaction() as conn:
                await feedback.renew(conn, waiting[first : first + BATCH])
        self._next = self._runtime.monotonic() + RENEW_SECONDS
        return RENEW_SECONDS
