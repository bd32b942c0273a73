"""News between processes: see what others committed, tell others that something was."""

import asyncio

import structlog

from controlplane import telemetry
from controlplane.runtime import Happening, Pulse, Runtime
from controlplane.storage import history
from controlplane.storage.notify import LISTENER_FAULTS, PING_SECONDS, listen, notify

COALESCE_SECONDS = 0.01
_log = structlog.get_logger()


class Tail:
    """Looks for approvals that ended anywhere, and wakes the waits and streams of this process."""

    def __init__(self, runtime: Runtime) -> None:
        """No mark taken yet: the first look takes it."""
        self._runtime = runtime
        self._horizon: str | None = None

    async def step(self) -> float:
        """See what was committed since the last look."""
        async with self._runtime.transaction() as conn:
            news = await history.since(conn, self._horizon)
        self._horizon = news.horizon
        self._runtime.waits.settle(news.settled)
        self._runtime.runs.settle(news.ended)
        self._runtime.answers.settle(news.closed)
        self._runtime.happenings.publish(Happening(*row) for row in news.rows)
        if news.work:
            self._runtime.work.beat()
        if news.wrote:
            self._runtime.news.beat()
        await asyncio.sleep(COALESCE_SECONDS)
        return 1.0


class Notifier:
    """Tells other processes, at most every 10 ms, that this one wrote something."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing written yet."""
        self._runtime = runtime
        self._told = runtime.wrote.mark

    async def step(self) -> float:
        """Send one notification for everything written since the last."""
        mark = self._runtime.wrote.mark
        if mark == self._told:
            return 1.0
        async with self._runtime.transaction() as conn:
            await notify(conn)
        self._told = mark
        await asyncio.sleep(COALESCE_SECONDS)
        return 1.0 if self._runtime.wrote.mark == mark else 0.0


async def listen_for_ever(runtime: Runtime, heard: Pulse) -> None:
    """Keep a listening connection; after every reconnect look at once, for what was missed meanwhile."""
    url = runtime.settings.direct_database_url or runtime.database_url
    while True:
        try:
            await _listen(url, heard)
        except LISTENER_FAULTS as error:
            _log.warning("listener_lost", cause=telemetry.said(error))
        await asyncio.sleep(1.0)


async def _listen(url: str, heard: Pulse) -> None:
    """Listen until the connection no longer answers."""
    async with listen(url, heard.beat) as listener:
        heard.beat()
        while True:
            await asyncio.sleep(PING_SECONDS)
            await listener.ping()
