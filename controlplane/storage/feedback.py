"""Short-lived questions as they are remembered: the words while one is pending, the sealed answer until it is taken."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain import feedback as rules
from controlplane.domain.answers import Choices, Kind
from controlplane.domain.feedback import Asking, FeedbackStatus, Kept, Question
from controlplane.domain.sealing import Sealed
from controlplane.storage.engine import Connection
from controlplane.storage.statement import Statement


class Ended(Struct, frozen=True):
    """A question that ended by itself, and how; `clock_of` is the run whose clock it stopped."""

    unique_id: str
    status: FeedbackStatus
    clock_of: str | None


async def lock_owner(conn: Connection, owner: str | None) -> None:
    """Let a key ask one question after the other, so that its questions can be counted."""
    await conn.run(_LOCK_OWNER, {"owner": owner or ""})


async def count_pending(conn: Connection, owner: str | None) -> int:
    """How many questions of a key are pending, counted up to the most that may be."""
    row = await conn.row(_COUNT, {"owner": owner, "most": rules.MOST_PENDING})
    return 0 if row is None else int(row.count)


async def add(conn: Connection, asking: Asking, owner: str | None) -> Question | None:
    """Keep a question, counted from now by the database's clock; None when its id is taken.

    What ended under the id more than an hour ago makes room for it.
    """
    choices = asking.choices
    values = {
        "unique_id": asking.unique_id,
        "owner": owner,
        "kind": choices.kind,
        "message": asking.message,
        "options": None if choices.options is None else list(choices.options),
        "yes_label": choices.yes_label,
        "no_label": choices.no_label,
        "session_id": asking.session_id,
        "execution_id": asking.execution_id,
        "public_key": asking.public_key,
        "seconds": float(asking.timeout_seconds),
        "waiter": rules.WAITER_SECONDS,
        "kept": rules.TOMBSTONE_SECONDS,
    }
    row = await conn.row(_ADD, values)
    return None if row is None else _question(row)


async def lock(conn: Connection, unique_id: str) -> Kept | None:
    """Lock a question and read it as it stands, with the database's clock after the lock was had."""
    row = await conn.row(_GET, {"unique_id": unique_id})
    if row is None:
        return None
    return Kept(
        unique_id=row.unique_id,
        owner=row.owner,
        status=FeedbackStatus(row.status),
        expires_at=row.expires_at,
        waiter_until=row.waiter_until,
        now=row.now,
        question=None if row.message is None else _question(row),
        public_key=row.public_key,
        sealed=None if row.ct is None else Sealed(row.enc, row.ct),
        submission_id=row.submission_id,
        stops_clock=row.stops_clock,
    )


async def pending(conn: Connection, unique_ids: Sequence[str] | None = None) -> list[Question]:
    """The questions that may be answered now, oldest first; of those that are named, or of all.

    Past its deadline, or with nobody waiting any more, none is shown, whether or not that was seen yet.
    """
    rows = await conn.rows(_PENDING, {"all": unique_ids is None, "ids": list(unique_ids or ())})
    return [_question(row) for row in rows]


async def endings(conn: Connection, unique_ids: Sequence[str]) -> dict[str, FeedbackStatus]:
    """How these have ended, those that have, whether or not that was seen yet, and are still known."""
    rows = await conn.rows(_ENDINGS, {"ids": list(unique_ids)})
    return {row.unique_id: FeedbackStatus(row.status) for row in rows}


async def end(
    conn: Connection,
    kept: Kept,
    status: FeedbackStatus,
    *,
    sealed: Sealed | None = None,
    submission_id: str | None = None,
) -> None:
    """End a pending question that is locked: its words go, and of an answer only what is sealed is kept."""
    values = {
        "unique_id": kept.unique_id,
        "status": status,
        "at": kept.now,
        "enc": None if sealed is None else sealed.enc,
        "ct": None if sealed is None else sealed.ct,
        "submission_id": submission_id,
    }
    if await conn.run(_END, values) != 1:
        raise RuntimeError("a question was not pending, although it is locked and was")
    conn.changes.closed.append(kept.unique_id)


async def stop_clock(conn: Connection, unique_id: str) -> None:
    """Keep that a question stops its run's clock as long as it is pending."""
    await conn.run(_STOP_CLOCK, {"unique_id": unique_id})


async def clocks_stopped(conn: Connection, execution_ids: Sequence[str]) -> set[str]:
    """Those of the runs whose clock some question stops."""
    rows = await conn.rows(_CLOCKS_STOPPED, {"ids": list(execution_ids)})
    return {row.execution_id for row in rows}


async def renew(conn: Connection, unique_ids: Sequence[str]) -> None:
    """Say that somebody waits for these, now; those that others have locked are passed over."""
    await conn.run(_RENEW, {"ids": list(unique_ids), "waiter": rules.WAITER_SECONDS})


async def note_read(conn: Connection, unique_id: str) -> None:
    """Keep when a sealed answer was read first."""
    await conn.run(_NOTE_READ, {"unique_id": unique_id})


async def drop_sealed(conn: Connection, unique_id: str) -> None:
    """Let go of a sealed answer."""
    await conn.run(_DROP_SEALED, {"unique_id": unique_id})


async def end_due(conn: Connection, limit: int) -> list[Ended]:
    """End up to `limit` questions that are past their deadline, or that nobody waits for any more."""
    rows = await conn.rows(_END_DUE, {"limit": limit})
    conn.changes.closed += [row.unique_id for row in rows]
    return [Ended(row.unique_id, FeedbackStatus(row.status), row.clock_of) for row in rows]


async def next_due_in(conn: Connection) -> float | None:
    """Seconds until the next question ends by itself; None when none is pending."""
    row = await conn.row(_NEXT_DUE)
    return None if row is None or row.seconds is None else float(row.seconds)


async def tidy(conn: Connection, limit: int) -> int:
    """Let go of sealed answers that were read, or never fetched, and of what ended an hour ago; how many rows."""
    wiped = await conn.run(_WIPE, {"limit": limit, "kept": rules.SEALED_SECONDS})
    return wiped + await conn.run(_BURY, {"limit": limit, "kept": rules.TOMBSTONE_SECONDS})


def _question(row: Any) -> Question:
    return Question(
        unique_id=row.unique_id,
        message=row.message,
        choices=Choices(
            kind=Kind(row.kind),
            options=None if row.options is None else tuple(row.options),
            yes_label=row.yes_label,
            no_label=row.no_label,
        ),
        session_id=row.session_id,
        execution_id=row.execution_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )


_LOCK_OWNER = Statement(sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:owner, 3))"))
_COUNT = Statement(
    sa.text("""
SELECT count(*) AS count FROM (
    SELECT 1 FROM feedback
    WHERE status = 'pending' AND coalesce(owner, '') = coalesce(CAST(:owner AS text), '')
    LIMIT CAST(:most AS int)
) AS mine
""")
)
_ADD = Statement(
    sa.text("""
INSERT INTO feedback (unique_id, owner, status, kind, message, options, yes_label, no_label, session_id, execution_id,
                      public_key, created_at, expires_at, waiter_until)
SELECT CAST(:unique_id AS text), CAST(:owner AS text), 'pending', CAST(:kind AS text), CAST(:message AS text),
       CAST(:options AS text[]), CAST(:yes_label AS text), CAST(:no_label AS text), CAST(:session_id AS text),
       CAST(:execution_id AS text), CAST(:public_key AS bytea), moment.at,
       moment.at + make_interval(secs => CAST(:seconds AS float8)),
       moment.at + make_interval(secs => CAST(:waiter AS float8))
FROM (SELECT clock_timestamp() AS at OFFSET 0) AS moment
ON CONFLICT (unique_id) DO UPDATE SET
    owner = EXCLUDED.owner, status = EXCLUDED.status, kind = EXCLUDED.kind, message = EXCLUDED.message,
    options = EXCLUDED.options, yes_label = EXCLUDED.yes_label, no_label = EXCLUDED.no_label,
    session_id = EXCLUDED.session_id, execution_id = EXCLUDED.execution_id, public_key = EXCLUDED.public_key,
    created_at = EXCLUDED.created_at, expires_at = EXCLUDED.expires_at, waiter_until = EXCLUDED.waiter_until,
    enc = NULL, ct = NULL, read_at = NULL, submission_id = NULL, ended_at = NULL
WHERE feedback.ended_at < clock_timestamp() - make_interval(secs => CAST(:kept AS float8))
RETURNING *
""")
)
# Outside of what locks, so that the clock is read once the lock is had.
_GET = Statement(
    sa.text("""
WITH locked AS MATERIALIZED (SELECT * FROM feedback WHERE unique_id = :unique_id FOR UPDATE)
SELECT locked.*, clock_timestamp() AS now FROM locked
""")
)
_PENDING = Statement(
    sa.text("""
SELECT * FROM feedback
WHERE status = 'pending' AND (CAST(:all AS boolean) OR unique_id = ANY (CAST(:ids AS text[])))
      AND least(expires_at, waiter_until) > (SELECT clock_timestamp())
ORDER BY created_at, unique_id
""")
)
_ENDINGS = Statement(
    sa.text("""
SELECT unique_id, CASE WHEN status <> 'pending' THEN status
                       WHEN expires_at <= waiter_until THEN 'expired' ELSE 'cancelled' END AS status
FROM feedback
WHERE unique_id = ANY (CAST(:ids AS text[]))
      AND (status <> 'pending' OR least(expires_at, waiter_until) <= (SELECT clock_timestamp()))
""")
)
_END = Statement(
    sa.text("""
UPDATE feedback SET status = :status, ended_at = CAST(:at AS timestamptz), enc = CAST(:enc AS bytea),
    ct = CAST(:ct AS bytea), submission_id = CAST(:submission_id AS text),
    kind = NULL, message = NULL, options = NULL, yes_label = NULL, no_label = NULL, session_id = NULL,
    execution_id = NULL, public_key = NULL, stops_clock = false
WHERE unique_id = :unique_id AND status = 'pending'
""")
)
_RENEW = Statement(
    sa.text("""
WITH mine AS (
    SELECT unique_id FROM feedback
    WHERE unique_id = ANY (CAST(:ids AS text[])) AND status = 'pending' AND waiter_until > clock_timestamp()
    ORDER BY unique_id FOR UPDATE SKIP LOCKED
)
UPDATE feedback SET waiter_until = clock_timestamp() + make_interval(secs => CAST(:waiter AS float8))
FROM mine WHERE feedback.unique_id = mine.unique_id
""")
)
_STOP_CLOCK = Statement(
    sa.text("UPDATE feedback SET stops_clock = true WHERE unique_id = :unique_id AND status = 'pending'")
)
_CLOCKS_STOPPED = Statement(
    sa.text(
        "SELECT DISTINCT execution_id FROM feedback WHERE stops_clock AND execution_id = ANY (CAST(:ids AS text[]))"
    )
)
_NOTE_READ = Statement(
    sa.text("UPDATE feedback SET read_at = clock_timestamp() WHERE unique_id = :unique_id AND read_at IS NULL")
)
_DROP_SEALED = Statement(sa.text("UPDATE feedback SET enc = NULL, ct = NULL WHERE unique_id = :unique_id"))
_END_DUE = Statement(
    sa.text("""
WITH due AS (
    SELECT unique_id, CASE WHEN expires_at <= waiter_until THEN 'expired' ELSE 'cancelled' END AS how,
           CASE WHEN stops_clock THEN execution_id END AS clock_of
    FROM feedback
    WHERE status = 'pending' AND least(expires_at, waiter_until) <= (SELECT clock_timestamp())
    ORDER BY unique_id LIMIT CAST(:limit AS int) FOR UPDATE SKIP LOCKED
)
UPDATE feedback SET status = due.how, ended_at = clock_timestamp(),
    kind = NULL, message = NULL, options = NULL, yes_label = NULL, no_label = NULL, session_id = NULL,
    execution_id = NULL, public_key = NULL, stops_clock = false
FROM due WHERE feedback.unique_id = due.unique_id
RETURNING feedback.unique_id, feedback.status, due.clock_of
""")
)
_NEXT_DUE = Statement(
    sa.text("""
SELECT extract(epoch FROM min(least(expires_at, waiter_until)) - clock_timestamp()) AS seconds
FROM feedback WHERE status = 'pending'
""")
)
# What was never fetched is kept until its deadline at least.
_WIPE = Statement(
    sa.text("""
WITH old AS (
    SELECT unique_id FROM feedback
    WHERE enc IS NOT NULL AND coalesce(read_at, expires_at)
          < (SELECT clock_timestamp()) - make_interval(secs => CAST(:kept AS float8))
    ORDER BY unique_id LIMIT CAST(:limit AS int) FOR UPDATE SKIP LOCKED
)
UPDATE feedback SET enc = NULL, ct = NULL FROM old WHERE feedback.unique_id = old.unique_id
""")
)
_BURY = Statement(
    sa.text("""
WITH old AS (
    SELECT unique_id FROM feedback
    WHERE status <> 'pending' AND ended_at < (SELECT clock_timestamp()) - make_interval(secs => CAST(:kept AS float8))
    ORDER BY unique_id LIMIT CAST(:limit AS int) FOR UPDATE SKIP LOCKED
)
DELETE FROM feedback USING old WHERE feedback.unique_id = old.unique_id
""")
)
