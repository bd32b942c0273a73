"""The dispatcher: claim what is due, send it in no transaction, settle it under the claim's fence."""

import asyncio
from collections import Counter

import structlog

from controlplane.domain.deliveries import IN_FLIGHT_PER_TARGET, Attempt, Claimed, callback_body, judge
from controlplane.domain.signatures import sign_standard
from controlplane.runtime import Runtime
from controlplane.services import deliveries as service
from controlplane.storage import deliveries

MAX_IN_FLIGHT = 64
_log = structlog.get_logger()


class TakenOver(Exception):
    """The delivery was told again or claimed by another while this try was on its way."""


class Dispatcher:
    """Sends callbacks; a slow receiver holds up at most its own few places."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing in flight."""
        self._runtime = runtime
        self._tasks: set[asyncio.Task[None]] = set()
        self._flying: Counter[str] = Counter()
        self._places: dict[str, asyncio.Semaphore] = {}
        self._more = False

    async def step(self) -> float:
        """Claim as much as there is room for and start sending it; return when the next one may be due."""
        room = MAX_IN_FLIGHT - len(self._tasks)
        self._more = room <= 0
        if room <= 0:
            return 1.0
        full = [target for target, count in self._flying.items() if count >= IN_FLIGHT_PER_TARGET]
        async with self._runtime.transaction() as conn:
            claims = await deliveries.claim(conn, limit=room, full=full)
            pause = 0.0 if claims else await deliveries.next_due_in(conn)
        for claimed in claims:
            self._start(claimed)
        self._more = bool(full) or bool(claims)
        if pause is None or (full and pause <= 0):
            return 1.0
        return max(pause, 0.0)

    async def drain(self) -> None:
        """Let what is in flight end, as it does within the send's deadline."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, claimed: Claimed) -> None:
        self._flying[claimed.target] += 1
        task = asyncio.create_task(self._deliver(claimed))
        self._tasks.add(task)
        task.add_done_callback(lambda done: self._ended(done, claimed.target))

    def _ended(self, task: asyncio.Task[None], target: str) -> None:
        self._tasks.discard(task)
        self._flying[target] -= 1
        if self._flying[target] <= 0:
            del self._flying[target]
            self._places.pop(target, None)
        if self._more:
            self._runtime.due.beat()
        if not task.cancelled() and task.exception() is not None:
            _log.error("delivery_failed", exc_info=task.exception())

    async def _deliver(self, claimed: Claimed) -> None:
        place = self._places.setdefault(claimed.target, asyncio.Semaphore(IN_FLIGHT_PER_TARGET))
        try:
            async with place:
                attempt = await self._send(claimed)
        except TakenOver:
            return
        verdict = judge(claimed, attempt, jitter=self._runtime.jitter())
        async with self._runtime.transaction() as conn:
            settled = await service.settle(conn, claimed, verdict, attempt.status)
        _log.info(
            "callback_tried",
            delivery_id=claimed.delivery_id,
            approval_id=claimed.approval.approval_id,
            attempt=claimed.attempts,
            outcome=verdict.status if settled else "taken_over",
            error=verdict.error,
        )

    async def _send(self, claimed: Claimed) -> Attempt:
        body = callback_body(claimed.approval)
        timestamp = self._runtime.unix()
        headers = {"webhook-id": claimed.delivery_id, "webhook-timestamp": str(timestamp)}
        if claimed.secret is not None:
            headers["webhook-signature"] = sign_standard(
                claimed.secret, body, webhook_id=claimed.delivery_id, timestamp=timestamp
            )

        async def mark() -> None:
            async with self._runtime.transaction() as conn:
                if not await deliveries.mark_writing(conn, claimed.delivery_id, claimed.fence):
                    raise TakenOver

        # Only where a further round may follow does it matter whether the agent can know of this end yet.
        before = mark if claimed.approval.reopens else None
        return await self._runtime.transport.post(claimed.url, body, headers, before_writing=before)
