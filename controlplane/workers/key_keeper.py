"""The first key closes what stood open, keys that end take what is held open under them along."""

from controlplane.runtime import Runtime
from controlplane.storage import keys

EVERY_SECONDS = 1.0


class KeyKeeper:
    """Looks at the keys that something is held open under, once a second."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing looked at yet."""
        self._runtime = runtime

    async def step(self) -> float:
        """Close what stood open once there is a key, review what is held open, keep what was used."""
        if self._runtime.open:
            await self._runtime.settle_access()
        await self._runtime.keys.review()
        used = self._runtime.keys.take_used()
        if used:
            async with self._runtime.transaction() as conn:
                await keys.note_used(conn, used)
        return EVERY_SECONDS
