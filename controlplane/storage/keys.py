"""API keys as they are remembered: looked up by id, listed, made, rotated, revoked; and which nodes are whose."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from controlplane.domain.keys import Key
from controlplane.storage.access_tables import api_keys, key_secrets, node_owners
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement

_NOW = sa.func.clock_timestamp()
_KEY = columns(api_keys, Key)
_TAKE_TURN = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('holdshort.keys', 0))")


class Found(Key, frozen=True, kw_only=True):
    """A key with what proves it until when, the nodes it owns, and the database's clock when it was read.

    `displaced`: the node that it is bound to is another key's.
    """

    digests: tuple[bytes, ...]
    until: tuple[datetime | None, ...]
    nodes: tuple[str, ...]
    displaced: bool
    now: datetime

    def proofs(self, now: datetime) -> list[bytes]:
        """The digests that prove it at a moment: one that was rotated away does so for a while."""
        return [digest for digest, until in zip(self.digests, self.until, strict=True) if until is None or now < until]


async def find(conn: Connection, key_ids: Sequence[str]) -> list[Found]:
    """Those of the keys with these ids that there are, each with what proves it."""
    return [to_struct(row, Found) for row in await conn.rows(_FIND, {"ids": list(key_ids)})]


async def any_there(conn: Connection) -> bool:
    """Whether a key exists, or ever did: revoked ones stay."""
    return await conn.row(sa.select(sa.literal(1)).select_from(api_keys).limit(1)) is not None


async def lock_first(conn: Connection) -> None:
    """Let whoever makes a key take turns, so that only one of them can make the first."""
    await conn.run(_TAKE_TURN)


async def add(conn: Connection, key: Key, digest: bytes) -> None:
    """Keep a new key with its first secret."""
    values = {field: getattr(key, field) for field in Key.__struct_fields__}
    values |= {"scopes": list(key.scopes), "allow": list(key.allow)}
    await conn.run(sa.insert(api_keys).values(values))
    await add_secret(conn, key.key_id, digest)


async def add_secret(conn: Connection, key_id: str, digest: bytes, *, others_for: float | None = None) -> None:
    """Keep a further secret; `others_for` seconds the present ones hold on, None leaves them as they are."""
    if others_for is not None:
        until = _NOW + sa.func.make_interval(0, 0, 0, 0, 0, 0, others_for)
        await conn.run(
            sa.update(key_secrets)
            .where(
                key_secrets.c.key_id == key_id,
                sa.or_(key_secrets.c.valid_until.is_(None), key_secrets.c.valid_until > until),
            )
            .values(valid_until=until)
        )
    await conn.run(sa.insert(key_secrets).values(key_id=key_id, digest=digest))


async def revoke(conn: Connection, key_id: str) -> Key | None:
    """End a key; the first time stands. None: there is no such key."""
    await conn.run(
        sa.update(api_keys).where(api_keys.c.key_id == key_id, api_keys.c.revoked_at.is_(None)).values(revoked_at=_NOW)
    )
    return await get(conn, key_id)


async def get(conn: Connection, key_id: str) -> Key | None:
    """One key."""
    row = await conn.row(sa.select(*_KEY).where(api_keys.c.key_id == key_id))
    return to_struct(row, Key) if row else None


async def listed(conn: Connection) -> list[Key]:
    """Every key, newest first; the ended ones too."""
    rows = await conn.rows(sa.select(*_KEY).order_by(api_keys.c.created_at.desc(), api_keys.c.key_id))
    return [to_struct(row, Key) for row in rows]


async def note_used(conn: Connection, used: Mapping[str, datetime]) -> None:
    """Keep when keys were used last."""
    await conn.run(_NOTE_USED, {"ids": list(used), "ats": list(used.values())})


async def claim_node(conn: Connection, node_id: str, key_id: str) -> str:
    """Make a node a key's own if it is nobody's, and return whose it is."""
    mine = {"node_id": node_id, "key_id": key_id}
    await conn.run(upsert(node_owners).values(mine).on_conflict_do_nothing(index_elements=["node_id"]))
    owner = await owner_of(conn, node_id)
    if owner is None:
        raise RuntimeError("a node that was claimed has no owner")
    return owner


async def owner_of(conn: Connection, node_id: str) -> str | None:
    """The key that a node belongs to."""
    row = await conn.row(sa.select(node_owners.c.key_id).where(node_owners.c.node_id == node_id))
    return row.key_id if row else None


async def move_node(conn: Connection, node_id: str, key_id: str) -> None:
    """Give a node to another key."""
    values = {"node_id": node_id, "key_id": key_id, "since": _NOW}
    await conn.run(upsert(node_owners).values(values).on_conflict_do_update(index_elements=["node_id"], set_=values))


def _secrets(column: sa.Column[Any]) -> sa.ColumnElement[Any]:
    mine = sa.select(column).where(key_secrets.c.key_id == api_keys.c.key_id).order_by(key_secrets.c.digest)
    return sa.func.array(mine.scalar_subquery())


# Built once: building one of these costs more than running it.
_FIND = Statement(
    sa.select(
        *_KEY,
        _secrets(key_secrets.c.digest).label("digests"),
        _secrets(key_secrets.c.valid_until).label("until"),
        sa.func.array(
            sa.select(node_owners.c.node_id).where(node_owners.c.key_id == api_keys.c.key_id).scalar_subquery()
        ).label("nodes"),
        sa.exists()
        .where(node_owners.c.node_id == api_keys.c.node_id, node_owners.c.key_id != api_keys.c.key_id)
        .label("displaced"),
        _NOW.label("now"),
    ).where(api_keys.c.key_id == sa.any_(bound_texts("ids")))
)
_NOTE_USED = Statement(
    sa.text("""
UPDATE api_keys k SET last_used_at = greatest(k.last_used_at, u.at)
FROM unnest(CAST(:ids AS text[]), CAST(:ats AS timestamptz[])) AS u(key_id, at)
WHERE k.key_id = u.key_id
""")
)
