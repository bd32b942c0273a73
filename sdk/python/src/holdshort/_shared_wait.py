"""One held call for all pauses of a process, re-armed when a pause is added; and the slow poll that backs up pushes."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator
from itertools import islice
from typing import Any

from holdshort._client import AsyncClient
from holdshort._errors import HoldshortError, NotAuthorised
from holdshort._wire import ApprovalStatus, Settled

_HOLD_S = 50.0
_CALL_LIMIT = 10_000
_PACE_S = 1.0
_POLL_S = 60.0
_REFUSED_S = 1.0
_TIMES_REFUSED = 3
log = logging.getLogger("holdshort")


class SharedWait:
    """Waits for any number of approvals with one call at a time for each 10,000 of them.

    Args:
        client: asks the control plane.
        settled: called with each approval that is final.
        refused: called with approvals that cannot be waited for, as the control plane lets this client in no more.
        held: True holds the call until something is final; False only looks once a minute, for what a push missed.
    """

    def __init__(
        self,
        client: AsyncClient,
        settled: Callable[[ApprovalStatus], None],
        refused: Callable[[Collection[str], NotAuthorised], None],
        *,
        held: bool,
    ) -> None:
        self._client = client
        self._settled = settled
        self._refused = refused
        self._held = held
        self._ids: Counter[str] = Counter()
        self._added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._said = False

    def add(self, approval_id: str) -> None:
        """Wait for this approval too, for one more."""
        self._ids[approval_id] += 1
        self._added.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="holdshort shared wait")

    def remove(self, approval_id: str) -> None:
        """One less waits for it; an open call that still names it is left open."""
        if self._ids[approval_id] > 1:
            self._ids[approval_id] -= 1
        else:
            del self._ids[approval_id]

    async def aclose(self) -> None:
        """End the call."""
        if self._task is not None:
            await _end(self._task)

    async def _run(self) -> None:
        while self._ids:
            if self._held:
                await self._until_added_or_settled()
                await self._gather_more()
            else:
                await asyncio.sleep(_POLL_S)
                for ids in self._chunks():
                    await self._look(ids, hold=0)

    async def _until_added_or_settled(self) -> None:
        self._added.clear()
        tasks = [_start(self._look(ids, hold=_HOLD_S)) for ids in self._chunks()]
        tasks.append(_start(self._some_added()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _end(*tasks)

    async def _some_added(self) -> None:
        await self._added.wait()
        await self._gather_more()

    async def _gather_more(self) -> None:
        # A thousand pauses that start, or end, together re-arm once; the more a call carries, the rarer it is repeated.
        await asyncio.sleep(min(1.0, 0.01 + len(self._ids) / 20_000))

    async def _look(self, ids: list[str], hold: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        found = await self._found(ids, hold)
        if found is None:
            return
        final = [approval for approval in found.approvals if approval.final]
        for approval in final:
            del self._ids[approval.approval_id]
            self._settled(approval)
        if hold and not final:
            # A control plane with too many waits answers at once; that must not become a busy loop.
            await asyncio.sleep(max(0.0, _PACE_S - (loop.time() - began)))

    async def _found(self, ids: list[str], hold: float) -> Settled | None:
        """What is final of these; None when that was refused."""
        for times in range(1, _TIMES_REFUSED + 1):
            try:
                found = await self._client.wait_for_approvals(ids, wait=hold)
            except NotAuthorised as refused:
                # One such answer may be a server's that only starts or a proxy's; several are the end of the key.
                if not self._said:
                    log.error("the control plane lets this program wait no more: %s", refused)  # noqa: TRY400
                self._said = True
                if times == _TIMES_REFUSED:
                    self._refused(frozenset(ids), refused)
            except HoldshortError as error:
                log.warning("the shared wait was refused, trying again: %s", error)
                await asyncio.sleep(_REFUSED_S)
                return None
            else:
                self._said = False
                return found
            await asyncio.sleep(_REFUSED_S)
        return None

    def _chunks(self) -> Iterator[list[str]]:
        ids = iter(list(self._ids))
        while chunk := list(islice(ids, _CALL_LIMIT)):
            yield chunk


def _start(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.create_task(work)


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
