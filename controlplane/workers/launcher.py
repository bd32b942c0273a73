"""The launcher: claim runs that are due, give them to instances in no transaction, settle what came of it."""

import asyncio
from collections import Counter
from functools import partial

import structlog

from controlplane.domain.dispatching import SENT_WITHIN, Dispatch, DispatchKind, cancel_request, judge, run_request
from controlplane.domain.keys import allowance
from controlplane.runtime import Runtime
from controlplane.services import dispatch as service
from controlplane.services.dispatch import Tried
from controlplane.storage import dispatches
from controlplane.storage.engine import Connection

MAX_IN_HAND = 256
_log = structlog.get_logger()


class TakenOver(Exception):
    """The run was claimed by another while this try was on its way."""


class Launcher:
    """Gives runs to agents, and tells agents of runs that ended. One transaction a step settles and claims."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing in hand."""
        self._runtime = runtime
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._tried: list[Tried] = []

    async def step(self) -> float:
        """Settle and claim once, start sending what was claimed; return when the next may be due, in seconds."""
        tried = self._tried[:]
        room = MAX_IN_HAND - len(self._tasks)
        async with self._runtime.transaction() as conn:
            held = await service.settle(conn, tried, self._runtime.new_id) if tried else set()
            claims = await self._claim(conn, room) if room else []
            due_in = await dispatches.next_due_in(conn)
        del self._tried[: len(tried)]
        self._log(tried, held)
        for claimed in claims:
            self._start(claimed)
        if claims:
            return 0.0
        return 1.0 if due_in is None or due_in <= 0 else due_in

    async def drain(self) -> None:
        """Let what is in flight end, as it does within the send's deadline, and settle it."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._tried:
            async with self._runtime.transaction() as conn:
                await service.settle(conn, self._tried, self._runtime.new_id)

    async def _claim(self, conn: Connection, room: int) -> list[Dispatch]:
        return await service.claim(
            conn,
            limit=room,
            in_hand=Counter(self._tasks.values()),
            concurrency=self._runtime.settings.node_concurrency,
            new_id=self._runtime.new_id,
        )

    def _start(self, claimed: Dispatch) -> None:
        task = asyncio.create_task(self._send(claimed, asyncio.get_running_loop().time()))
        self._tasks[task] = claimed.node_id
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        if not task.cancelled() and task.exception() is not None:
            _log.error("dispatch_failed", exc_info=task.exception())

    async def _send(self, claimed: Dispatch, received: float) -> None:
        make = run_request if claimed.kind is DispatchKind.RUN else cancel_request
        url, headers, body = make(claimed)
        try:
            attempt = await self._runtime.dispatching.post(
                url,
                body,
                headers,
                before_writing=partial(self._check, claimed, received),
                allowance=allowance(claimed.allow),
            )
        except TakenOver:
            return
        self._tried.append(Tried(claimed, judge(claimed, attempt, jitter=self._runtime.jitter()), attempt))
        self._runtime.work.beat()

    async def _check(self, claimed: Dispatch, received: float) -> None:
        """Right before the first byte: whoever was stopped meanwhile has lost the run to another process."""
        if asyncio.get_running_loop().time() - received > SENT_WITHIN.total_seconds():
            raise TakenOver
        if claimed.replay or claimed.kind is not DispatchKind.RUN:
            return
        # Nothing guards such an agent from having its run twice, so whoever comes next must know that it was sent.
        async with self._runtime.transaction() as conn:
            if not await dispatches.mark_writing(conn, claimed.execution_id, claimed.claim):
                raise TakenOver

    def _log(self, tried: list[Tried], held: set[str]) -> None:
        for one in tried:
            _log.info(
                "run_dispatched",
                execution_id=one.sent.execution_id,
                instance_id=one.sent.instance_id,
                kind=one.sent.kind,
                fence=one.sent.fence,
                attempt=one.sent.attempts,
                outcome=one.verdict.settling if one.sent.execution_id in held else "taken_over",
                status=one.attempt.status,
            )
