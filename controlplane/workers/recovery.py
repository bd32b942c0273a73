"""Recovery: runs of instances that are gone are released, runs over their time are ended. Any replica does it."""

import asyncio

from controlplane.runtime import Runtime
from controlplane.services import dispatch

BATCH = 500
COALESCE_SECONDS = 0.05


class Recovery:
    """Wakes with the work, and once a second."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing released yet."""
        self._runtime = runtime

    async def step(self) -> float:
        """Release and end one batch each; return 0 while there is more."""
        async with self._runtime.transaction() as conn:
            released = await dispatch.release_from_the_gone(conn, limit=BATCH, new_id=self._runtime.new_id)
        async with self._runtime.transaction() as conn:
            ended = await dispatch.end_out_of_time(conn, limit=BATCH, new_id=self._runtime.new_id)
        async with self._runtime.transaction() as conn:
            given_up = await dispatch.give_up_unstarted(conn, limit=BATCH, new_id=self._runtime.new_id)
            pause = await dispatch.next_out_of_time_in(conn)
        # Woken by every run that is dispatched or ends, it looks often enough without looking each time.
        await asyncio.sleep(COALESCE_SECONDS)
        if BATCH in {released, ended, given_up}:
            return 0.0
        return 1.0 if pause is None else min(max(pause, 0.05), 1.0)
