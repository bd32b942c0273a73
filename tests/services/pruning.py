"""Histories to be pruned: runs that have ended, sealed, and the moment before which they are old."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from controlplane.cli.audit.exporting import export_lines
from controlplane.cli.audit.pruning import Done, Wanted, prune_history
from controlplane.domain.audit import head_line
from controlplane.domain.executions import ExecutionStatus
from controlplane.storage import clock, seals
from controlplane.storage.seals import EVERY
from tests.postgres import Database
from tests.services.sealing import seal
from tests.services.store import Store


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[Store]:
    """The services on a database."""
    store = Store(database)
    yield store
    await store.engine.dispose()


async def ended_runs(store: Store, count: int, first: int = 1) -> list[str]:
    """Runs that asked, were answered and have ended, each sealed by itself; the ids of their approvals."""
    found = []
    for number in range(first, first + count):
        run = f"ended-{number}"
        await store.start(run)
        asked = await store.ask("a", run)
        await store.decide(asked.approval_id)
        await store.report(ExecutionStatus.SUCCEEDED, run)
        assert await seal(store) > 0
        found.append(asked.approval_id)
    return found


async def now(store: Store) -> datetime:
    async with store.tx() as conn:
        return await clock.now(conn)


async def exported(store: Store, file: Path) -> Path:
    """A copy of all that there is."""
    with file.open("wb") as out:
        await export_lines(store.database.url, EVERY, out)
    return file


async def heads_of(store: Store, file: Path) -> Path:
    async with store.tx() as conn:
        lines = [head_line(each) for each in await seals.after(conn, 0, 1000)]
    await asyncio.to_thread(file.write_bytes, b"".join(lines))
    return file


async def prune(store: Store, before: datetime | None = None, **wanted: Any) -> Done:
    """Prune what is older than now, or than a moment."""
    return await prune_history(store.database.url, Wanted(before=before or await now(store), **wanted))
