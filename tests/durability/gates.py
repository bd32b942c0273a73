"""Gates inside the database: a closed one holds the server's transaction at a named point until the test opens it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import IntEnum

import asyncpg

from tests.postgres import Database

_MAKE = """
CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN NEW; END $$;
CREATE TRIGGER before_it_is_written BEFORE UPDATE ON approvals
    FOR EACH ROW EXECUTE FUNCTION wait_at_gate({statement});
CREATE CONSTRAINT TRIGGER while_it_commits AFTER UPDATE ON approvals DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_at_gate({commit});
CREATE TRIGGER before_a_delivery_changes BEFORE UPDATE ON deliveries
    FOR EACH ROW EXECUTE FUNCTION wait_at_gate({delivery});
CREATE TRIGGER before_a_dispatch_changes BEFORE UPDATE ON dispatches
    FOR EACH ROW EXECUTE FUNCTION wait_at_gate({dispatch});
CREATE CONSTRAINT TRIGGER while_a_dispatch_commits AFTER UPDATE ON dispatches DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION wait_at_gate({dispatch_commit});
"""


class Gate(IntEnum):
    """Where a transaction can be held.

    `STATEMENT`: an approval is about to be decided. `COMMIT`: the server has said COMMIT, and hears no answer;
    the transaction stands even if the server dies now. `DELIVERY`: a callback is about to be claimed or settled.
    `DISPATCH`: a run is about to be claimed for an agent, or what came of that is about to be kept;
    `DISPATCH_COMMIT`: as `COMMIT`, of that.
    """

    STATEMENT = 101
    COMMIT = 102
    DELIVERY = 103
    DISPATCH = 104
    DISPATCH_COMMIT = 105


class Gates:
    """The gates of one database; open until one is closed."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    async def close(self, gate: Gate) -> None:
        await self._connection.execute("SELECT pg_advisory_lock($1)", int(gate))

    async def open(self, gate: Gate) -> None:
        await self._connection.execute("SELECT pg_advisory_unlock($1)", int(gate))


@asynccontextmanager
async def gates(database: Database) -> AsyncIterator[Gates]:
    """Build the gates into a test's own database; all are open again at the end of the block."""
    connection = await database.connect()
    try:
        await connection.execute(_MAKE.format(**{gate.name.lower(): int(gate) for gate in Gate}))
        yield Gates(connection)
    finally:
        await connection.close()
