"""Sweeps short-lived questions, on every replica: ends what is due, drops what was read, buries what is old."""

from controlplane.runtime import Runtime
from controlplane.services import feedback as service
from controlplane.storage import feedback

BATCH = 500


class FeedbackSweeper:
    """Wakes for the next end, or after a second at most."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing swept yet."""
        self._runtime = runtime

    async def step(self) -> float:
        """Sweep one batch; return when the next question ends."""
        async with self._runtime.transaction() as conn:
            swept = await service.sweep(conn, limit=BATCH)
            pause = await feedback.next_due_in(conn)
        if swept:
            return 0.0
        return 1.0 if pause is None else min(max(pause, 0.05), 1.0)
