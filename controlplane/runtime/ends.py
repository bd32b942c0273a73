"""Looking for many waiting calls at once: one query and one connection, however many were woken together."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from controlplane.storage.approvals import Shown

MOST_CALLERS = 200
MOST_IDS = 500

Look = Callable[[list[str]], Awaitable[list[Shown]]]


class _Caller:
    __slots__ = ("answer", "ids")

    def __init__(self, ids: Sequence[str]) -> None:
        self.ids = ids
        self.answer: asyncio.Future[list[Shown]] = asyncio.get_running_loop().create_future()

    def tell(self, ended: dict[str, Shown]) -> None:
        if not self.answer.done():
            self.answer.set_result([ended[each] for each in self.ids if each in ended])

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Ends:
    """Finds which approvals are final. What is asked while one look is under way goes into the next one.

    A decision that ten thousand calls wait for would otherwise queue as many transactions for a few connections, and
    everyone else behind them. One look answers 200 callers at most, so that the loop is never kept long from others.
    """

    def __init__(self, look: Look) -> None:
        """`look` returns those of some approvals that are final, in a transaction of its own."""
        self._look = look
        self._callers: deque[_Caller] = deque()
        self._looking: asyncio.Task[None] | None = None

    async def among(self, approval_ids: Sequence[str]) -> list[Shown]:
        """Those of the approvals that are final; the look begins after the call.

        Raises:
            DatabaseUnavailable: the database is away; everyone who asked in the same look is told so.
        """
        if len(approval_ids) > MOST_IDS:
            return await self._look(list(approval_ids))
        caller = _Caller(approval_ids)
        self._callers.append(caller)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._run())
        return await caller.answer

    async def _run(self) -> None:
        while self._callers:
            callers = [self._callers.popleft() for _ in range(min(len(self._callers), MOST_CALLERS))]
            ids = dict.fromkeys(each for caller in callers for each in caller.ids)
            try:
                ended = {shown.approval_id: shown for shown in await self._look(list(ids))}
            except Exception as error:
                for caller in callers:
                    caller.fail(error)
            else:
                for caller in callers:
                    caller.tell(ended)
