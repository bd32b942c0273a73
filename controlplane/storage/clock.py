"""The database's clock: the one that deadlines and leases are judged by."""

from datetime import datetime

import sqlalchemy as sa

from controlplane.storage.engine import Connection

# In a subquery it is read once, so that an index finds what is due; called bare it would be read for every row.
MOMENT = sa.select(sa.func.clock_timestamp()).scalar_subquery()


async def now(conn: Connection) -> datetime:
    """This very moment, not the transaction's beginning."""
    row = await conn.row(sa.select(sa.func.clock_timestamp().label("at")))
    if row is None:
        raise RuntimeError("the database returned no time")
    at: datetime = row.at
    return at
