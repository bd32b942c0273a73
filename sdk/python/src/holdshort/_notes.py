"""The notes of a run: kept in order, in the background, and never raised into it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from holdshort._errors import RunEnded

_LAST_S = 10.0
log = logging.getLogger("holdshort")


class Notes:
    """Keeps the notes of one run.

    Args:
        execution_id: of the run.
        keep: sends one note.
    """

    def __init__(self, execution_id: str, keep: Callable[[str, Sequence[str]], Awaitable[Any]]) -> None:
        self._execution_id = execution_id
        self._keep = keep
        self._notes: list[tuple[str, Sequence[str]]] = []
        self._teller: asyncio.Task[None] | None = None

    def add(self, message: str, tags: Sequence[str]) -> None:
        """Keep a note, after those before it."""
        self._notes.append((message, tags))
        if self._teller is None or self._teller.done():
            self._teller = asyncio.get_running_loop().create_task(self._tell(), name="holdshort notes")

    async def _tell(self) -> None:
        while self._notes:
            notes, self._notes = self._notes, []
            for message, tags in notes:
                try:
                    await self._keep(message, tags)
                except RunEnded:
                    return
                except Exception as error:  # one note that cannot be kept must not take the others along
                    log.warning("a note of %s was not kept: %s", self._execution_id, error)

    async def flush(self) -> None:
        """Wait until the notes are kept, at most 10 s."""
        await asyncio.sleep(0)  # lets notes in that a thread has just handed over
        if self._teller is None:
            return
        _, late = await asyncio.wait((self._teller,), timeout=_LAST_S)
        for task in late:
            task.cancel()
            log.warning("the last notes of %s were not kept in time", self._execution_id)
