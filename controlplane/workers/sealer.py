"""The sealer: chains what history gained, never in a decision's transaction; one replica at a time."""

import structlog

from controlplane.runtime import Runtime
from controlplane.services import audit
from controlplane.services.audit import HistoryMisplaced

BATCH = 500
EVERY_SECONDS = 1.0
LATE_SECONDS = 60.0
_log = structlog.get_logger()


class Sealer:
    """Looks once a second, and works off what was there before it without taking the process for itself."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing sealed yet."""
        self._runtime = runtime
        self._since = runtime.monotonic()
        self._look_at = self._since

    async def step(self) -> float:
        """Seal one batch; where there is more, rest for as long as that took."""
        begun = self._runtime.monotonic()
        if begun >= self._look_at:
            await self._say_what_is_wrong(there_long=begun - self._since >= LATE_SECONDS)
            self._look_at = begun + LATE_SECONDS
        try:
            async with self._runtime.transaction() as conn:
                sealed = await audit.seal(conn, BATCH)
        except HistoryMisplaced:
            return EVERY_SECONDS  # said once a minute, as it does not pass by itself
        return EVERY_SECONDS if sealed < BATCH else self._runtime.monotonic() - begun

    async def _say_what_is_wrong(self, *, there_long: bool) -> None:
        """Nobody may keep history from being sealed, or guarded, unseen: not by a turn or a transaction without end."""
        async with self._runtime.look() as conn:
            standing = await audit.standing(conn)
        left = standing.unsealed
        if there_long and left.seconds > LATE_SECONDS:
            _log.warning("history_is_sealed_late", rows=left.rows, seconds=round(left.seconds))
        for finding in standing.findings:
            _log.error("history_is_not_safe", fault=finding.fault, cause=finding.what)
