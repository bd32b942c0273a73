"""Sealing as the workers do it, and how it is checked: every row is in one seal, and every seal fits its rows."""

from typing import Any

import asyncpg
import msgspec

from controlplane.cli.audit.verifying import Verified, verify_history
from controlplane.domain.events import Fact
from controlplane.services import audit
from controlplane.storage import history
from tests.factories import AGENT
from tests.services.store import Store

INSERT = (
    "INSERT INTO history (type, execution_id, actor_kind, actor_name, actor_via, data)"
    " VALUES ($1, 'run-1', 'agent', 'node-1', 'api', '{}')"
)


async def record(store: Store, *types: str) -> None:
    """Rows of one transaction."""
    facts = [msgspec.convert({"type": each, "actor": AGENT, "execution_id": "run-1"}, Fact) for each in types]
    async with store.tx() as conn:
        await history.record(conn, *facts)


async def seal(store: Store, limit: int = 500) -> int:
    """One turn of the sealer."""
    async with store.tx() as conn:
        return await audit.seal(conn, limit)


async def seal_all(store: Store, limit: int = 500) -> None:
    """Turns until nothing is left that can be sealed."""
    while await seal(store, limit):
        pass


async def sealed(sql: "asyncpg.Connection[Any]") -> list[list[str]]:
    """The types of the rows of each seal, in the order in which they were sealed."""
    found = await sql.fetch(
        """
        SELECT s.number, array_agg(h.type ORDER BY h.xid, h.seq) AS types
        FROM seals s JOIN history h
            ON (h.xid, h.seq) >= (s.first_xid, s.first_seq) AND (h.xid, h.seq) <= (s.last_xid, s.last_seq)
        GROUP BY s.number ORDER BY s.number
        """
    )
    return [row["types"] for row in found]


async def verified(store: Store) -> Verified:
    """What verifying comes to, which must be nothing."""
    found = await verify_history(store.database.url, None)
    assert found.findings == []
    return found
