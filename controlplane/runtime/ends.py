"""Looking for many waiting calls at once: one query and one connection, however many were woken together."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from msgspec import Struct

from controlplane.storage.approvals import Shown

MOST_CALLERS = 200
MOST_IDS = 500

Judge = Callable[[Shown], bool]
Look = Callable[[list[str], Judge], Awaitable[list[Shown]]]


class Eyes(Struct, frozen=True):
    """What a caller may see of an approval that is final, and whether its agent knows of an end that is seen here."""

    sees: Judge
    are_its_agents: bool


class Seen(Struct, frozen=True):
    """What a caller sees, and whether there was more that is final."""

    shown: list[Shown]
    more: bool


class _Caller:
    __slots__ = ("answer", "eyes", "ids")

    def __init__(self, ids: Sequence[str], eyes: Eyes) -> None:
        self.ids = ids
        self.eyes = eyes
        self.answer: asyncio.Future[Seen] = asyncio.get_running_loop().create_future()

    def tell(self, ended: dict[str, Shown]) -> None:
        if not self.answer.done():
            self.answer.set_result(_seen([ended[each] for each in self.ids if each in ended], self.eyes))

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Ends:
    """Finds which approvals are final. What is asked while one look is under way goes into the next one.

    A decision that ten thousand calls wait for would otherwise queue as many transactions for a few connections, and
    everyone else behind them. One look answers 200 callers at most, so that the loop is never kept long from others.
    """

    def __init__(self, look: Look) -> None:
        """Nothing asked yet.

        Args:
            look: returns those of some approvals that are final, in a transaction of its own, in which it keeps that
                the agents know of those which a judge names.
        """
        self._look = look
        self._callers: deque[_Caller] = deque()
        self._looking: asyncio.Task[None] | None = None

    async def among(self, approval_ids: Sequence[str], eyes: Eyes) -> Seen:
        """Those of the approvals that are final, as far as these eyes see them; the look begins after the call.

        Raises:
            DatabaseUnavailable: the database is away; everyone who asked in the same look is told so.
        """
        if len(approval_ids) > MOST_IDS:
            return _seen(await self._look(list(approval_ids), lambda shown: _read_by(eyes, shown)), eyes)
        caller = _Caller(approval_ids, eyes)
        self._callers.append(caller)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._run())
        return await caller.answer

    async def _run(self) -> None:
        while self._callers:
            callers = [self._callers.popleft() for _ in range(min(len(self._callers), MOST_CALLERS))]
            ids = dict.fromkeys(each for caller in callers for each in caller.ids)
            try:
                ended = {shown.approval_id: shown for shown in await self._look(list(ids), _readers(callers))}
            except Exception as error:
                for caller in callers:
                    caller.fail(error)
            else:
                for caller in callers:
                    caller.tell(ended)


def _seen(ended: Sequence[Shown], eyes: Eyes) -> Seen:
    shown = [each for each in ended if eyes.sees(each)]
    return Seen(shown, more=len(shown) < len(ended))


def _read_by(eyes: Eyes, shown: Shown) -> bool:
    return eyes.are_its_agents and eyes.sees(shown)


def _readers(callers: Sequence[_Caller]) -> Judge:
    """Whether one of the callers is an approval's agent, who knows of its end from this look on."""
    wanting: dict[str, list[Eyes]] = {}
    for caller in callers:
        if caller.eyes.are_its_agents:
            for each in caller.ids:
                wanting.setdefault(each, []).append(caller.eyes)
    return lambda shown: any(eyes.sees(shown) for eyes in wanting.get(shown.approval_id, ()))
