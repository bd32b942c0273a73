"""What an operator should know of a database: its own settings, its keys and secrets, what was given up."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import sqlalchemy as sa
from msgspec import Struct

from controlplane.storage.access_tables import api_keys
from controlplane.storage.engine import Connection
from controlplane.storage.tables import deliveries

_DURABLE = ("fsync", "full_page_writes", "synchronous_commit")


class Server(Struct, frozen=True):
    """PostgreSQL itself, and which of the settings that durability rests on are off."""

    version: str
    standby: bool
    unsafe: tuple[str, ...]


async def server(conn: Connection) -> Server:
    """What PostgreSQL says of itself."""
    row = await conn.row(_SERVER, {"names": list(_DURABLE)})
    if row is None:
        raise RuntimeError("a query without a table returned no row")
    return Server(row.version, row.standby, tuple(row.unsafe))


async def usable_keys(conn: Connection) -> Mapping[str, int]:
    """How many keys of each scope are good now."""
    return {row.scope: row.keys for row in await conn.rows(_USABLE)}


async def keys_ending(conn: Connection, within: timedelta) -> Mapping[str, datetime]:
    """The keys that are good now and end within a time, with when."""
    return {row.name: row.expires_at for row in await conn.rows(_ENDING, {"within": within})}


async def sealed_under(conn: Connection) -> Mapping[str | None, int]:
    """How many secrets that are still needed each master key sealed; None for those that are unsealed."""
    return {row.master: row.secrets for row in await conn.rows(_SEALED)}


async def dead_deliveries(conn: Connection) -> int:
    """How many callbacks were given up."""
    row = await conn.row(sa.select(sa.func.count().label("dead")).where(deliveries.c.status == "dead"))
    return 0 if row is None else int(row.dead)


_GOOD = sa.and_(
    api_keys.c.revoked_at.is_(None),
    sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > sa.func.clock_timestamp()),
)
_scopes = sa.select(sa.func.unnest(api_keys.c.scopes).label("scope")).where(_GOOD).subquery()
_USABLE = sa.select(_scopes.c.scope, sa.func.count().label("keys")).group_by(_scopes.c.scope)
_ENDING = (
    sa.select(api_keys.c.name, api_keys.c.expires_at)
    .where(_GOOD, api_keys.c.expires_at < sa.func.clock_timestamp() + sa.bindparam("within", type_=sa.Interval))
    .order_by(api_keys.c.expires_at)
)
_SERVER = sa.text("""
SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
       ARRAY(SELECT name FROM unnest(CAST(:names AS text[])) AS n(name)
             WHERE current_setting(name) = 'off' ORDER BY name) AS unsafe
""")
_SEALED = sa.text("""
SELECT CASE WHEN secret LIKE 'hsv1.%' THEN split_part(secret, '.', 2) END AS master, count(*) AS secrets
FROM (SELECT callback_secret AS secret FROM approvals WHERE status = 'pending'
      UNION ALL SELECT secret FROM deliveries WHERE status = 'pending'
      UNION ALL SELECT sealed FROM sender_secrets
                WHERE valid_until IS NULL OR valid_until > clock_timestamp()) AS kept
WHERE secret IS NOT NULL GROUP BY 1
""")
