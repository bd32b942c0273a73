"""What only the owner of the tables can do: change or empty what otherwise only grows."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from controlplane.storage.tables import metadata

_GROWING = ("history", "seals", "prunings")
UNGUARD = ";".join(f"ALTER TABLE {table} DISABLE TRIGGER {table}_only_grows" for table in _GROWING)
GUARD = ";".join(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_only_grows" for table in _GROWING)
EMPTY = ";".join((UNGUARD, *(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables)), GUARD))


@asynccontextmanager
async def unguarded(connection: Any) -> AsyncIterator[None]:
    """As owner, with nothing in the way, for the length of a block."""
    await connection.execute(UNGUARD)
    try:
        yield
    finally:
        await connection.execute(GUARD)
