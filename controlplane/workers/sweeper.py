"""The sweeper: expire what is past its deadline, on every replica, without a leader."""

from controlplane.runtime import Runtime
from controlplane.services import expiry
from controlplane.storage import approvals

BATCH = 500


class Sweeper:
    """Wakes for the next deadline, or after a second at most."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing swept yet."""
        self._runtime = runtime

    async def step(self) -> float:
        """Expire one batch and drop early answers past their time; return when the next deadline comes."""
        async with self._runtime.transaction() as conn:
            expired = await expiry.expire_approvals(conn, limit=BATCH, new_id=self._runtime.new_id)
        async with self._runtime.transaction() as conn:
            dropped = await expiry.drop_parked(conn, limit=BATCH)
            pause = await approvals.next_deadline_in(conn)
        if expired or dropped:
            return 0.0
        return 1.0 if pause is None else min(max(pause, 0.05), 1.0)
