"""Webhook senders as they are remembered: by name, each with the sealed secrets that hold beside each other."""

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.senders import Sender, SenderSecret
from controlplane.storage.access_tables import sender_secrets, senders
from controlplane.storage.engine import Connection
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.statement import Statement

_NOW = sa.func.clock_timestamp()
_SENDER = columns(senders, Sender)
_SECRET = columns(sender_secrets, SenderSecret)
_HOLDS = sa.or_(sender_secrets.c.valid_until.is_(None), sender_secrets.c.valid_until > _NOW)


class Held(Struct, frozen=True):
    """A secret that holds now: sealed, and for how many seconds more where it ends by itself."""

    sender: str
    secret_id: str
    sealed: str
    seconds_left: float | None


class Standing(Struct, frozen=True):
    """Every secret that holds, each sender's newest first, and the names of those that were revoked."""

    held: tuple[Held, ...]
    revoked: frozenset[str]


async def standing(conn: Connection) -> Standing:
    """What signatures are judged by, at one moment."""
    rows = await conn.rows(_STANDING)
    held = tuple(to_struct(row, Held) for row in rows if row.secret_id is not None)
    return Standing(held, frozenset(row.sender for row in rows if row.revoked))


async def any_usable(conn: Connection) -> bool:
    """Whether some secret holds now."""
    return bool((await standing(conn)).held)


async def take_turn(conn: Connection) -> None:
    """Hold off other changes of senders until this transaction ends: how many secrets there may be is counted."""
    await conn.run(_TAKE_TURN)


async def get(conn: Connection, name: str) -> Sender | None:
    """One sender."""
    row = await conn.row(sa.select(*_SENDER).where(senders.c.name == name))
    return to_struct(row, Sender) if row else None


async def listed(conn: Connection) -> list[Sender]:
    """Every sender by name, the revoked ones too."""
    rows = await conn.rows(sa.select(*_SENDER).order_by(senders.c.name))
    return [to_struct(row, Sender) for row in rows]


async def secrets(conn: Connection) -> list[SenderSecret]:
    """Every secret, newest first, those that ended too."""
    order = (sender_secrets.c.created_at.desc(), sender_secrets.c.secret_id.desc())
    return [to_struct(row, SenderSecret) for row in await conn.rows(sa.select(*_SECRET).order_by(*order))]


async def add(conn: Connection, name: str) -> None:
    """Keep a new sender, or take one in again that was revoked."""
    again = {"created_at": _NOW, "revoked_at": None}
    await conn.run(upsert(senders).values(name=name).on_conflict_do_update(index_elements=["name"], set_=again))


async def add_secret(conn: Connection, name: str, secret_id: str, sealed: str) -> None:
    """Keep a further secret of a sender."""
    await conn.run(sa.insert(sender_secrets).values(secret_id=secret_id, sender=name, sealed=sealed))


async def end_secrets(conn: Connection, name: str, *, after: float = 0, only: str | None = None) -> list[str]:
    """Let a sender's secrets end, at the latest in `after` seconds; the ids of those that held until now.

    Args:
        conn: the open transaction.
        name: of the sender.
        after: seconds; what ends sooner does so.
        only: the id of the one that ends, None for all.
    """
    until = _NOW + sa.func.make_interval(0, 0, 0, 0, 0, 0, after)
    statement = (
        sa.update(sender_secrets)
        .where(sender_secrets.c.sender == name, _HOLDS)
        .values(valid_until=sa.func.least(sender_secrets.c.valid_until, until))
        .returning(sender_secrets.c.secret_id)
    )
    if only is not None:
        statement = statement.where(sender_secrets.c.secret_id == only)
    return sorted(row.secret_id for row in await conn.rows(statement))


async def revoke(conn: Connection, name: str) -> None:
    """Mark a sender as revoked; the first time stands."""
    statement = sa.update(senders).where(senders.c.name == name, senders.c.revoked_at.is_(None))
    await conn.run(statement.values(revoked_at=_NOW))


_TAKE_TURN = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('holdshort.senders', 0))")
# Built once, as every server asks it every two seconds.
_STANDING = Statement(
    sa.select(
        senders.c.name.label("sender"),
        senders.c.revoked_at.is_not(None).label("revoked"),
        sender_secrets.c.secret_id,
        sender_secrets.c.sealed,
        sa.cast(sa.extract("epoch", sender_secrets.c.valid_until - _NOW), sa.Double).label("seconds_left"),
    )
    .select_from(
        senders.outerjoin(
            sender_secrets,
            sa.and_(sender_secrets.c.sender == senders.c.name, senders.c.revoked_at.is_(None), _HOLDS),
        )
    )
    .order_by(sender_secrets.c.created_at.desc(), sender_secrets.c.secret_id.desc(), senders.c.name)
)
