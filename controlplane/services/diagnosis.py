"""What an operator should know of a set-up, looked up in one transaction."""

from controlplane.domain.diagnosis import SOON, Found
from controlplane.services import audit
from controlplane.storage import clock, diagnosis, keys, senders
from controlplane.storage.engine import Connection


async def look(conn: Connection) -> Found:
    """What the database says of itself and of what is kept in it."""
    server = await diagnosis.server(conn)
    standing = await audit.standing(conn)
    return Found(
        at=await clock.now(conn),
        server=server.version,
        standby=server.standby,
        unsafe=server.unsafe,
        triggers=standing.guard.triggers,
        grants=standing.guard.grants,
        keys=await diagnosis.usable_keys(conn),
        any_key=await keys.any_there(conn),
        ending=await diagnosis.keys_ending(conn, SOON),
        senders=len({held.sender for held in (await senders.standing(conn)).held}),
        sealed_under=await diagnosis.sealed_under(conn),
        unsealed_seconds=standing.unsealed.seconds,
        dead_deliveries=await diagnosis.dead_deliveries(conn),
    )
