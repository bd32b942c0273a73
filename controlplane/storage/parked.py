"""Parked answers and the webhooks seen before: what makes an early or repeated webhook take effect once."""

import msgspec
import sqlalchemy as sa

from controlplane.domain.outcomes import Outcome
from controlplane.domain.parking import Parked
from controlplane.storage.approvals import Place
from controlplane.storage.clock import MOMENT
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts, columns, to_struct
from controlplane.storage.statement import Statement
from controlplane.storage.tables import parked, seen_webhooks

_PARKED = columns(parked, Parked)
_ALIVE = parked.c.expires_at > sa.func.clock_timestamp()


async def lock_asking(conn: Connection, request_id: str) -> None:
    """Hold off early answers for a request id while it is asked; asks do not hold off each other.

    Taken before the execution's lock, by asks shared and by the slow path of early answers alone, so that one of
    the two always sees the other.
    """
    await conn.run(_LOCK_SHARED, {"id": request_id})


async def lock_parking(conn: Connection, request_id: str, sender: str) -> None:
    """Hold off asks for a request id, and other early answers of a sender, while one is parked."""
    await conn.run(sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:id, 1))"), {"id": request_id})
    await conn.run(sa.text("SELECT pg_advisory_xact_lock(hashtextextended(:id, 2))"), {"id": sender})


async def take_waiting(conn: Connection, request_id: str, execution_id: str) -> tuple[Parked, ...]:
    """Lock the answers parked under a request id for this execution or for any, still in their time.

    Asks of several executions run side by side: an answer that one of them is using is waited for, and no longer
    there for the other.
    """
    rows = await conn.rows(_TAKE_WAITING, {"request_id": request_id, "execution_id": execution_id})
    return tuple(to_struct(row, Parked) for row in rows)


async def find(conn: Connection, sender: str, request_id: str, execution_id: str | None) -> Parked | None:
    """What this sender has parked under the same words."""
    row = await conn.row(
        sa.select(*_PARKED).where(
            parked.c.approval_request_id == request_id,
            parked.c.sender == sender,
            sa.func.coalesce(parked.c.execution_id, "") == (execution_id or ""),
            _ALIVE,
        )
    )
    return to_struct(row, Parked) if row else None


async def count(conn: Connection, sender: str) -> int:
    """How many answers this sender has parked."""
    row = await conn.row(sa.select(sa.func.count().label("n")).where(parked.c.sender == sender))
    return int(row.n) if row else 0


async def park(conn: Connection, answer: Parked) -> list[Parked]:
    """Keep an early answer; those whose time is up under the same words make way and are returned."""
    over = await conn.rows(
        sa.delete(parked)
        .where(
            parked.c.approval_request_id == answer.approval_request_id,
            parked.c.sender == answer.sender,
            sa.func.coalesce(parked.c.execution_id, "") == (answer.execution_id or ""),
        )
        .returning(*_PARKED)
    )
    await conn.run(sa.insert(parked).values(msgspec.structs.asdict(answer) | {"keys": list(answer.keys)}))
    return [to_struct(row, Parked) for row in over]


async def add_keys(conn: Connection, parked_id: str, keys: tuple[str, ...]) -> None:
    """Let a parked answer be recognised by further keys, those of its repeats."""
    await conn.run(sa.update(parked).where(parked.c.parked_id == parked_id).values(keys=list(keys)))


async def remove(conn: Connection, parked_ids: list[str]) -> None:
    """Forget parked answers that were used or dropped."""
    await conn.run(sa.delete(parked).where(parked.c.parked_id.in_(parked_ids)))


async def take_expired(conn: Connection, limit: int) -> list[Parked]:
    """Remove answers whose time is up and return them; those another process is removing are left to it."""
    due = (
        sa.select(parked.c.parked_id)
        .where(parked.c.expires_at <= MOMENT)
        .order_by(parked.c.expires_at)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    rows = await conn.rows(sa.delete(parked).where(parked.c.parked_id.in_(due)).returning(*_PARKED))
    return [to_struct(row, Parked) for row in rows]


async def page(conn: Connection, after: Place | None, limit: int) -> list[Parked]:
    """One page of what is parked, newest first."""
    key = sa.tuple_(parked.c.received_at, parked.c.parked_id)
    statement = sa.select(*_PARKED).where(_ALIVE).limit(limit)
    if after is not None:
        statement = statement.where(key < sa.tuple_(sa.literal(after.at), sa.literal(after.id)))
    rows = await conn.rows(statement.order_by(parked.c.received_at.desc(), parked.c.parked_id.desc()))
    return [to_struct(row, Parked) for row in rows]


async def seen(conn: Connection, sender: str, keys: tuple[str, ...]) -> Outcome | None:
    """How this sender's webhook was answered before, recognised by its id or by its bytes."""
    row = await conn.row(_SEEN, {"sender": sender, "keys": list(keys)})
    return msgspec.convert(row.outcome, Outcome) if row else None


async def remember(conn: Connection, sender: str, keys: tuple[str, ...], outcome: Outcome) -> list[str]:
    """Keep how a webhook was answered, in the decision's transaction, and return the keys that were new.

    The first answer under a key stands; one that is being written now is waited for.
    """
    if not keys:
        return []
    kept = msgspec.json.encode(outcome).decode()
    binds = {"sender": sender, "keys": list(keys), "approval_id": outcome.approval_id, "outcome": kept}
    return [row.key for row in await conn.rows(_REMEMBER, binds)]


async def forget(conn: Connection, sender: str, keys: list[str]) -> None:
    """Take back what `remember` kept under these keys."""
    await conn.run(sa.delete(seen_webhooks).where(seen_webhooks.c.sender == sender, seen_webhooks.c.key.in_(keys)))


# Built once: building one of these costs more than running it.
_LOCK_SHARED = Statement(sa.text("SELECT pg_advisory_xact_lock_shared(hashtextextended(:id, 1))"))
_TAKE_WAITING = Statement(
    sa.select(*_PARKED)
    .where(
        parked.c.approval_request_id == sa.bindparam("request_id"),
        sa.or_(parked.c.execution_id.is_(None), parked.c.execution_id == sa.bindparam("execution_id")),
        _ALIVE,
    )
    .order_by(parked.c.parked_id)
    .with_for_update()
)
_SEEN = Statement(
    sa.select(seen_webhooks.c.outcome)
    .where(seen_webhooks.c.sender == sa.bindparam("sender"), seen_webhooks.c.key == sa.any_(bound_texts("keys")))
    .order_by(seen_webhooks.c.at)
    .limit(1)
)
_REMEMBER = Statement(
    sa.text("""
INSERT INTO seen_webhooks (sender, key, approval_id, outcome)
SELECT :sender, key, :approval_id, CAST(:outcome AS jsonb) FROM unnest(CAST(:keys AS text[])) AS key
ON CONFLICT DO NOTHING
RETURNING key
""")
)
