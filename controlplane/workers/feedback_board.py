"""Keeps the board of short-lived questions: follows what any process commits, and looks at all of it anew at times."""

import asyncio
from collections.abc import Iterable

from controlplane.domain.events import FactType
from controlplane.domain.feedback import FeedbackStatus
from controlplane.runtime import Happening, Runtime
from controlplane.storage import feedback

ANEW_SECONDS = 10.0
_OUTCOMES: dict[str, FeedbackStatus] = {
    FactType.FEEDBACK_ANSWERED: FeedbackStatus.ANSWERED,
    FactType.FEEDBACK_EXPIRED: FeedbackStatus.EXPIRED,
    FactType.FEEDBACK_CANCELLED: FeedbackStatus.CANCELLED,
}


class BoardKeeper:
    """Puts up what was asked and takes down what ended, in the tens of milliseconds in which the tail sees it."""

    def __init__(self, runtime: Runtime) -> None:
        """Nothing hangs there yet."""
        self._runtime = runtime

    async def step(self) -> float:
        """Look at every question, then follow what happens for 10 s."""
        clock = asyncio.get_running_loop().time
        with self._runtime.happenings.listening() as ear:
            await self._look_anew()
            until = clock() + ANEW_SECONDS
            while (left := until - clock()) > 0:
                heard = await ear.take(left)
                if heard is None:
                    break
                await self._follow(heard)
        return 0.0

    async def _look_anew(self) -> None:
        async with self._runtime.look() as conn:
            pending = await feedback.pending(conn)
            gone = self._runtime.board.unique_ids() - {question.unique_id for question in pending}
            ended = await feedback.endings(conn, sorted(gone)) if gone else {}
        self._runtime.board.add(pending)
        # What is not even known any more ended long ago.
        self._runtime.board.remove({unique_id: ended.get(unique_id, FeedbackStatus.CANCELLED) for unique_id in gone})

    async def _follow(self, heard: Iterable[Happening]) -> None:
        told = [(each.type, each.unique_id) for each in heard if each.unique_id is not None]
        asked = [unique_id for kind, unique_id in told if kind == FactType.FEEDBACK_ASKED]
        if asked:
            async with self._runtime.look() as conn:
                pending = await feedback.pending(conn, asked)
            self._runtime.board.add(pending)
        self._runtime.board.remove({unique_id: _OUTCOMES[kind] for kind, unique_id in told if kind in _OUTCOMES})
