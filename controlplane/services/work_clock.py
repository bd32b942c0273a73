"""A run that waits for a short-lived answer does not work meanwhile: its clock stands still, as in a pause.

Questions are locked before runs, here and everywhere; nobody who holds a run looks at a question.
"""

from collections.abc import Sequence
from typing import NoReturn

from controlplane.domain import runs
from controlplane.domain.feedback import Question
from controlplane.storage import cases, feedback
from controlplane.storage.engine import Connection


async def stop(conn: Connection, question: Question) -> None:
    """Stop the clock of the run that asks, where it has a limit and is in the reach of whoever asks.

    Args:
        conn: the open transaction.
        question: as it was asked just now.
    """
    if question.execution_id is None:
        return
    for case in await cases.lock_all(conn, [question.execution_id]):
        if case.execution.limit_seconds is not None and not case.execution.final:
            await feedback.stop_clock(conn, question.unique_id)
            await cases.save(conn, [(case, runs.stop_clock(case))], _nothing_new)


async def go_on(conn: Connection, execution_ids: Sequence[str]) -> None:
    """Let the clocks of runs go on whose questions ended; where another is open it goes on standing still."""
    if not execution_ids:
        return
    locked = await cases.lock_all(conn, sorted(set(execution_ids)))
    # After the locks, so that of two questions that end at once the later sees the earlier.
    still = await feedback.clocks_stopped(conn, execution_ids)
    going = [(case, runs.let_clock_go_on(case)) for case in locked if case.execution.execution_id not in still]
    await cases.save(conn, going, _nothing_new)


def _nothing_new(prefix: str) -> NoReturn:
    raise RuntimeError(f"a clock makes nothing that needs an id ({prefix})")
