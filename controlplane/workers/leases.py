"""Leases: instances that are silent are let go, and what pointed to one that is gone follows its node."""

from datetime import datetime, timedelta

from controlplane.runtime import Runtime
from controlplane.services import following
from controlplane.services import nodes as service
from controlplane.storage import clock, instances, pointing

GONE_AT_ONCE = 100
MOVED_AT_ONCE = 500
NODES_AT_ONCE = 20
LONGEST_GAP = timedelta(seconds=5)
FORGET_EVERY = timedelta(hours=1)


class Watch:
    """For how long a process has looked without a break, by the database's clock, as leases are judged by that.

    A control plane or a database that was away was silent itself: agents could not be heard. The same clock shows a
    machine that slept, and a clock that was set.
    """

    def __init__(self) -> None:
        """Not looking yet."""
        self._since: datetime | None = None
        self._last: datetime | None = None

    def look(self, now: datetime) -> timedelta:
        """For how long this has been going on, after a look at `now`."""
        since = self._since
        if since is None or self._last is None or not timedelta() <= now - self._last <= LONGEST_GAP:
            since = now
        self._since, self._last = since, now
        return now - since

    def end(self) -> None:
        """A look failed: whatever comes next begins anew."""
        self._last = None


class Leases:
    """Looks once a second for instances whose lease has passed."""

    def __init__(self, runtime: Runtime, watch: Watch | None = None) -> None:
        """Nothing watched yet."""
        self._runtime = runtime
        self._watch = watch or Watch()

    async def step(self) -> float:
        """Let one batch go; return 0 while there is more."""
        try:
            async with self._runtime.transaction() as conn:
                watched = self._watch.look(await clock.now(conn))
                gone = await service.expire_leases(conn, watched_seconds=watched.total_seconds(), limit=GONE_AT_ONCE)
        except BaseException:
            self._watch.end()
            raise
        return 0.0 if gone == GONE_AT_ONCE else 1.0


class Follower:
    """Moves callbacks to where their agent is now, as soon as it is there, and forgets instances of old."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing moved and nothing forgotten yet."""
        self._runtime = runtime
        self._forget_at = runtime.monotonic()

    async def step(self) -> float:
        """Move a batch of each kind; return 0 while there is more."""
        async with self._runtime.transaction() as conn:
            moved = await following.move_deliveries(conn, nodes=NODES_AT_ONCE, limit=MOVED_AT_ONCE)
            left = await pointing.left(conn, NODES_AT_ONCE)
        more = [await self._follow(one) for one in left]
        await self._forget()
        return 0.0 if moved or any(more) else 1.0

    async def _follow(self, one: pointing.Left) -> bool:
        async with self._runtime.transaction() as conn:
            return await following.move_callbacks(conn, one, limit=MOVED_AT_ONCE)

    async def _forget(self) -> None:
        now = self._runtime.monotonic()
        if now < self._forget_at:
            return
        async with self._runtime.transaction() as conn:
            forgotten = await instances.forget(conn, MOVED_AT_ONCE)
        if forgotten < MOVED_AT_ONCE:
            self._forget_at = now + FORGET_EVERY.total_seconds()
