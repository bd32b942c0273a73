"""The dispatcher: claim what is due, send it in no transaction, settle it under the claim's fence."""

import asyncio
from collections import Counter

import structlog

from controlplane.domain.deliveries import (
    IN_FLIGHT_PER_TARGET,
    Attempt,
    Claimed,
    callback_body,
    judge,
)
from controlplane.domain.keys import allowance
from controlplane.domain.signatures import sign_standard
from controlplane.domain.vault import SecretUnreadable
from controlplane.runtime import Runtime
from controlplane.services import deliveries as service
from controlplane.storage import outbox
from controlplane.storage.outbox import Tried

MAX_IN_HAND = 256
_log = structlog.get_logger()


class TakenOver(Exception):
    """The delivery was told again or claimed by another while this try was on its way."""


class Dispatcher:
    """Sends callbacks; a slow receiver holds up at most its own few places.

    One transaction a step settles everything that was tried since the last and claims what there is room for, so
    the database is asked no more often under load than without.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Nothing in hand."""
        self._runtime = runtime
        self._tasks: set[asyncio.Task[None]] = set()
        self._tried: list[Tried] = []
        self._held: Counter[str] = Counter()
        self._places: dict[str, asyncio.Semaphore] = {}

    async def step(self) -> float:
        """Settle and claim once, start sending what was claimed; return when the next one may be due, in seconds."""
        tried = self._tried[:]
        room = MAX_IN_HAND - self._held.total() + len(tried)
        async with self._runtime.transaction() as conn:
            settled = await service.settle(conn, tried) if tried else set()
            held = self._held - Counter(one.claimed.target for one in tried)
            claims = await outbox.claim(conn, limit=room, held=held) if room else []
            due_in = await outbox.next_due_in(conn)
        self._let_go(tried, settled)
        for claimed in claims:
            self._start(claimed)
        if due_in is None or (due_in <= 0 and not claims):
            return 1.0  # nothing is due, or only what there is no room for: a try that ends wakes the next step
        return max(due_in, 0.0)

    async def drain(self) -> None:
        """Let what is in flight end, as it does within the send's deadline, and settle it."""
        while self._tasks:
            await asyncio.wait(self._tasks)
        if self._tried:
            async with self._runtime.transaction() as conn:
                await service.settle(conn, self._tried)

    def _start(self, claimed: Claimed) -> None:
        self._held[claimed.target] += 1
        task = asyncio.create_task(self._deliver(claimed))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("delivery_failed", exc_info=task.exception())

    def _let_go(self, tried: list[Tried], settled: set[str]) -> None:
        del self._tried[: len(tried)]
        for one in tried:
            _log.info(
                "callback_tried",
                delivery_id=one.claimed.delivery_id,
                approval_id=one.claimed.approval.approval_id,
                attempt=one.claimed.attempts,
                outcome=one.verdict.status if one.claimed.delivery_id in settled else "taken_over",
                error=one.verdict.error,
            )
            self._release(one.claimed.target)

    def _release(self, target: str) -> None:
        self._held[target] -= 1
        if self._held[target] <= 0:
            del self._held[target]
            self._places.pop(target, None)

    async def _deliver(self, claimed: Claimed) -> None:
        place = self._places.setdefault(claimed.target, asyncio.Semaphore(IN_FLIGHT_PER_TARGET))
        try:
            async with place:
                attempt = await self._send(claimed)
        except TakenOver:
            self._release(claimed.target)
            return
        except BaseException:
            self._release(claimed.target)
            raise
        verdict = judge(claimed, attempt, jitter=self._runtime.jitter())
        self._tried.append(Tried(claimed, verdict, attempt.status))
        self._runtime.due.beat()

    async def _send(self, claimed: Claimed) -> Attempt:
        body = callback_body(claimed.approval)
        timestamp = self._runtime.unix()
        headers = {"webhook-id": claimed.delivery_id, "webhook-timestamp": str(timestamp)}
        if claimed.secret is not None:
            try:
                secret = self._runtime.unseal(claimed.secret)
            except SecretUnreadable as fault:
                return Attempt(error=fault.message)  # unsigned it would be refused, so it waits for the key
            headers["webhook-signature"] = sign_standard(
                secret, body, webhook_id=claimed.delivery_id, timestamp=timestamp
            )

        async def mark() -> None:
            async with self._runtime.transaction() as conn:
                if not await outbox.mark_writing(conn, claimed.delivery_id, claimed.fence):
                    raise TakenOver

        # Only where a further round may follow does it matter whether the agent can know of this end yet.
        before = mark if claimed.approval.reopens else None
        return await self._runtime.transport.post(
            claimed.url, body, headers, before_writing=before, allowance=allowance(claimed.allow)
        )
