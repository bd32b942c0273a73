"""Sessions as they are remembered: found by their digest, opened, ended, noted as used, and dropped a day after."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import sqlalchemy as sa

from controlplane.domain.sessions import IDLE, LONGEST, Session, Why
from controlplane.storage.access_tables import api_keys, key_secrets
from controlplane.storage.engine import Connection
from controlplane.storage.inbox_tables import sessions
from controlplane.storage.rows import columns, to_struct
from controlplane.storage.statement import Statement

KEPT_AFTER = timedelta(days=1)
_NOW = sa.func.clock_timestamp()
_SESSION = columns(sessions, Session)


class Found(Session, frozen=True, kw_only=True):
    """A session, and the database's clock when it was read."""

    now: datetime


class Over(Session, frozen=True, kw_only=True):
    """A session that must end, and why."""

    why: Why


async def find(conn: Connection, digests: Sequence[bytes]) -> list[Found]:
    """Those of the sessions with these digests that there are."""
    return [to_struct(row, Found) for row in await conn.rows(_FIND, {"digests": list(digests)})]


async def add(conn: Connection, *, digest: bytes, session_id: str, key_id: str, key_digest: bytes) -> None:
    """Keep a session that begins now."""
    values = {"digest": digest, "session_id": session_id, "key_id": key_id, "key_digest": key_digest}
    await conn.run(sa.insert(sessions).values(values))


async def end(conn: Connection, digest: bytes) -> Session | None:
    """End a session; None where there is no such one, or it had ended."""
    ended = (
        sa.update(sessions)
        .where(sessions.c.digest == digest, sessions.c.ended_at.is_(None))
        .values(ended_at=_NOW)
        .returning(*_SESSION)
    )
    row = await conn.row(ended)
    return to_struct(row, Session) if row else None


async def note_seen(conn: Connection, seen: Mapping[bytes, datetime]) -> None:
    """Keep when sessions were used last."""
    await conn.run(_NOTE_SEEN, {"digests": list(seen), "ats": list(seen.values())})


async def over(conn: Connection, *, limit: int) -> list[Over]:
    """Sessions that must end, locked; those that another process ends meanwhile are left out."""
    statement = (
        sa.select(*_SESSION, _WHY.label("why"))
        .where(sessions.c.ended_at.is_(None), _WHY.is_not(None))
        .order_by(sessions.c.digest)
        .limit(limit)
        .with_for_update(of=sessions, skip_locked=True)
    )
    return [to_struct(row, Over) for row in await conn.rows(statement)]


async def drop_ended(conn: Connection) -> None:
    """Forget sessions that ended a day ago; history keeps that they were."""
    await conn.run(sa.delete(sessions).where(sessions.c.ended_at < _NOW - KEPT_AFTER))


# What `domain.keys.usable` and `domain.sessions.holds` say, for all sessions at once.
_PROVEN = (
    sa.exists()
    .where(
        api_keys.c.key_id == sessions.c.key_id,
        api_keys.c.revoked_at.is_(None),
        sa.or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > _NOW),
        key_secrets.c.key_id == sessions.c.key_id,
        key_secrets.c.digest == sessions.c.key_digest,
        sa.or_(key_secrets.c.valid_until.is_(None), key_secrets.c.valid_until > _NOW),
    )
    .correlate(sessions)
)
_WHY = sa.case(
    (sa.not_(_PROVEN), Why.KEY.value),
    (sessions.c.created_at + LONGEST <= _NOW, Why.TOO_OLD.value),
    (sessions.c.seen_at + IDLE <= _NOW, Why.IDLE.value),
)
# Built once: every page looks.
_FIND = Statement(
    sa.select(*_SESSION, _NOW.label("now")).where(
        sessions.c.digest == sa.any_(sa.bindparam("digests", type_=sa.ARRAY(sa.LargeBinary)))
    )
)
_NOTE_SEEN = Statement(
    sa.text("""
UPDATE sessions s SET seen_at = greatest(s.seen_at, u.at)
FROM unnest(CAST(:digests AS bytea[]), CAST(:ats AS timestamptz[])) AS u(digest, at)
WHERE s.digest = u.digest AND s.ended_at IS NULL
""")
)
