"""Who waits for which answer in this process. Registered before the question is asked, so no answer is too early."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import NamedTuple

from holdshort._errors import HandedBack
from holdshort._wire import ApprovalResult

_REMEMBERED = 10_000


class Key(NamedTuple):
    """Names one round of one question; known before the control plane has answered."""

    execution_id: str
    approval_request_id: str
    round: int


class Pause:
    """One awaited answer, shared by all who wait for it; `secret` signs its callbacks."""

    __slots__ = ("_waiting", "approval_id", "future", "secret")

    def __init__(self, secret: str, future: "asyncio.Future[ApprovalResult | HandedBack]") -> None:
        self.secret = secret
        self.future = future
        self.approval_id: str | None = None
        self._waiting = 0

    def join(self) -> None:
        """Count one more who waits."""
        self._waiting += 1

    def leave(self) -> bool:
        """Count one less; True when nobody waits any more."""
        self._waiting -= 1
        return self._waiting == 0


class Registry:
    """The pauses of one process, and the last answered ones, whose callbacks may still be repeated.

    Args:
        make_secret: returns a new callback secret, 16 characters or more.
    """

    def __init__(self, make_secret: Callable[[], str]) -> None:
        self._make_secret = make_secret
        self._waiting: dict[Key, Pause] = {}
        self._answered: OrderedDict[Key, str] = OrderedDict()
        self.draining = False

    def __len__(self) -> int:
        return len(self._waiting)

    def register(self, key: Key) -> Pause:
        """Wait under this key on the running loop; release it afterwards."""
        pause = self._waiting.get(key)
        if pause is None:
            pause = Pause(self._make_secret(), asyncio.get_running_loop().create_future())
            self._waiting[key] = pause
        pause.join()
        return pause

    def release(self, key: Key, pause: Pause) -> None:
        """Stop waiting; an answered pause is remembered for repeated callbacks."""
        if not pause.leave():
            return
        self._waiting.pop(key, None)
        if pause.future.done() and isinstance(pause.future.result(), ApprovalResult):
            self._answered[key] = pause.secret
            if len(self._answered) > _REMEMBERED:
                self._answered.popitem(last=False)

    def secret(self, key: Key) -> str | None:
        """The secret that callbacks under this key are signed with; None when nobody waits or waited."""
        pause = self._waiting.get(key)
        return pause.secret if pause else self._answered.get(key)

    def resolve(self, result: ApprovalResult) -> bool:
        """Hand over an answer, once; True when somebody waits for it or waited."""
        key = Key(result.execution_id, result.approval_request_id, result.round)
        pause = self._waiting.get(key)
        if pause is not None:
            _set(pause.future, result)
        return pause is not None or key in self._answered

    def lose(self, approval_ids: Collection[str], end: HandedBack) -> None:
        """End the waits for these approvals without an answer; others go on."""
        for pause in list(self._waiting.values()):
            if pause.approval_id in approval_ids:
                _set(pause.future, end)

    def hand_back(self) -> None:
        """End every wait without an answer: the process stops, the runs stay waiting."""
        self.draining = True
        for pause in list(self._waiting.values()):
            _set(pause.future, HandedBack())


def _set(future: "asyncio.Future[ApprovalResult | HandedBack]", value: ApprovalResult | HandedBack) -> None:
    loop = future.get_loop()
    if loop is asyncio.get_running_loop():
        _set_now(future, value)
    else:
        loop.call_soon_threadsafe(_set_now, future, value)


def _set_now(future: "asyncio.Future[ApprovalResult | HandedBack]", value: ApprovalResult | HandedBack) -> None:
    if not future.done():
        future.set_result(value)
