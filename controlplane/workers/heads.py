"""Heads: the newest seal is written down outside of the database, where who rewrites that does not reach it."""

import structlog

from controlplane.delivery import heads
from controlplane.domain.audit import head_line
from controlplane.domain.seals import Seal
from controlplane.runtime import Runtime
from controlplane.services import audit

EVERY_SECONDS = 60.0
AGAIN_SECONDS = 5.0
_log = structlog.get_logger()


class HeadWriter:
    """Writes a head as soon as there is a new one, but not two in a minute; after a failure it tries again sooner.

    Args:
        runtime: of this process.
        target: a file or an http(s) URL.
    """

    def __init__(self, runtime: Runtime, target: str) -> None:
        """Nothing written yet."""
        self._runtime = runtime
        self._target = target
        self._written = 0
        self._due = runtime.monotonic()

    async def step(self) -> float:
        """Write the newest seal if it is time and it is a new one; return the seconds until the next time."""
        left = self._due - self._runtime.monotonic()
        if left > 0:
            return left
        async with self._runtime.look() as conn:
            newest = await audit.newest(conn)
        new = newest if newest is not None and newest.number != self._written else None
        pause = EVERY_SECONDS if new is not None and await self._write(new) else AGAIN_SECONDS
        self._due = self._runtime.monotonic() + pause
        return pause

    async def _write(self, newest: Seal) -> bool:
        fault = await heads.write(self._target, head_line(newest), self._runtime.transport)
        if fault is not None:
            _log.error("audit_head_not_written", cause=fault)
            return False
        self._written = newest.number
        return True
