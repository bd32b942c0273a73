"""Keeps the desk: one look at the database for all open pages, whenever approvals were asked or ended anywhere."""

import asyncio
from collections.abc import Iterable

from controlplane.domain.approvals import FINAL_APPROVAL
from controlplane.domain.events import FactType
from controlplane.domain.feedback import Question
from controlplane.domain.telling import Counts
from controlplane.runtime import Asked, Change, Ear, Happening, Pulse, Runtime
from controlplane.storage import inbox_lists, standing
from controlplane.workers.loop import repeat

QUIET_SECONDS = 1.0
COALESCE_SECONDS = 0.02
TOLD_ONE_BY_ONE = 500
_ABOUT_APPROVALS = frozenset({FactType.APPROVAL_REQUESTED, *(f"approval.{status}" for status in FINAL_APPROVAL)})


async def keep_desk(runtime: Runtime) -> None:
    """Keep the desk for ever, beginning with what the board shows."""
    with runtime.happenings.listening() as heard, runtime.board.listening() as changes:
        runtime.desk.begin_anew(_questions(runtime))
        await asyncio.gather(
            repeat("desk", DeskKeeper(runtime, heard).step, Pulse()),
            repeat("questions", QuestionKeeper(runtime, changes).step, Pulse()),
        )


class DeskKeeper:
    """Tells the desk which approvals were asked and ended since its last step, and how many wait now."""

    def __init__(self, runtime: Runtime, ear: Ear[Happening]) -> None:
        """Nothing heard yet."""
        self._runtime = runtime
        self._ear = ear
        self._heard: set[str] = set()
        self._missed = False

    async def step(self) -> float:
        """Wait until something was heard, and tell it; what could not be looked up is told by the next step."""
        heard = await self._ear.take(QUIET_SECONDS)
        self._heard |= about_approvals(heard or ())
        self._missed = self._missed or heard is None or len(self._heard) > TOLD_ONE_BY_ONE
        if not self._heard and not self._missed:
            return 0.0
        if self._runtime.desk.anybody:
            await self._look()
        self._heard, self._missed = set(), False
        await asyncio.sleep(COALESCE_SECONDS)
        return 0.0

    async def _look(self) -> None:
        async with self._runtime.look() as conn:
            found = [] if self._missed else await standing.among(conn, sorted(self._heard))
            waiting = await inbox_lists.waiting(conn)
        if self._missed:
            self._runtime.desk.begin_anew()
        self._runtime.desk.tell(*found, Counts(waiting=waiting))


class QuestionKeeper:
    """Tells the desk which short-lived questions the board put up and took down."""

    def __init__(self, runtime: Runtime, ear: Ear[Change]) -> None:
        """Nothing heard yet."""
        self._runtime = runtime
        self._ear = ear

    async def step(self) -> float:
        """Wait until the board changed, and tell it."""
        desk = self._runtime.desk
        changes = await self._ear.take(QUIET_SECONDS)
        if changes == []:
            return 0.0
        for change in changes or ():
            if isinstance(change, Asked):
                desk.put_up(change.question.unique_id, change.question)
            else:
                desk.take_down(change.unique_id, change)
        if changes is None:
            desk.begin_anew(_questions(self._runtime))
        desk.tell(Counts(feedback=len(self._runtime.board.questions())))
        return 0.0


def about_approvals(heard: Iterable[Happening]) -> set[str]:
    """The approvals that were asked or ended, by their ids."""
    return {each.approval_id for each in heard if each.approval_id is not None and each.type in _ABOUT_APPROVALS}


def _questions(runtime: Runtime) -> dict[str, Question]:
    return {question.unique_id: question for question in runtime.board.questions()}
