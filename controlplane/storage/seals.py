"""Seals as they are remembered, and history as they cover it: every column as text, in the order of the stream."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects.postgresql import array

from controlplane.domain.seals import COLUMNS, Place, Seal, Texts
from controlplane.storage.engine import Connection
from controlplane.storage.statement import Statement
from controlplane.storage.tables import history, seals


class Newest(Struct, frozen=True):
    """The last seal; `ours` is False where this database counts its transactions anew, below those of its history."""

    seal: Seal
    ours: bool


class Range(Struct, frozen=True):
    """Numbers of rows, both with it; None: no bound."""

    first: int | None = None
    last: int | None = None


EVERY = Range()


class Left(Struct, frozen=True):
    """Rows that no seal covers yet: how many, and the seconds that the oldest of them waits."""

    rows: int
    seconds: float


async def take_turn(conn: Connection) -> bool:
    """Become the only one that seals until this transaction ends; False when another one is."""
    row = await conn.row(_TAKE_TURN)
    return row is not None and row.mine


async def newest(conn: Connection) -> Newest | None:
    """The last seal."""
    row = await conn.row(_NEWEST)
    return None if row is None else Newest(_seal(row), row.ours)


async def add(conn: Connection, seal: Seal) -> None:
    """Keep a new seal."""
    values = {
        "number": seal.number,
        "first_xid": str(seal.first.xid),
        "first_seq": seal.first.seq,
        "last_xid": str(seal.last.xid),
        "last_seq": seal.last.seq,
        "rows": seal.rows,
        "sha256": seal.sha256,
        "at": seal.at,
    }
    await conn.run(_ADD, values)


async def after(conn: Connection, number: int, limit: int) -> list[Seal]:
    """The seals that follow one, in order."""
    return [_seal(row) for row in await conn.rows(_AFTER, {"after": number, "limit": limit})]


async def of_numbers(conn: Connection, numbers: Sequence[int]) -> dict[int, Seal]:
    """Those of these seals that are there."""
    return {row.number: _seal(row) for row in await conn.rows(_OF_NUMBERS, {"numbers": list(numbers)})}


async def rows_to(conn: Connection, place: Place, upto: Place, limit: int, seqs: Range = EVERY) -> list[Texts]:
    """The rows after a place and up to another, with it, in order."""
    binds = binds_of("after", place) | binds_of("upto", upto) | {"limit": limit, "first": seqs.first, "last": seqs.last}
    return [row.texts for row in await conn.rows(_ROWS_TO, binds)]


async def rows_after(conn: Connection, place: Place, limit: int, seqs: Range = EVERY) -> list[Texts]:
    """The rows after a place, in order, as far as no open transaction can still add one before them."""
    binds = binds_of("after", place) | {"limit": limit, "first": seqs.first, "last": seqs.last}
    return [row.texts for row in await conn.rows(_ROWS_AFTER, binds)]


async def left_after(conn: Connection, place: Place, most: int) -> Left:
    """What there is after a place, of transactions beside open ones too; counted up to `most`."""
    row = await conn.row(_LEFT_AFTER, binds_of("after", place) | {"most": most})
    return Left(0, 0.0) if row is None else Left(row.rows, row.seconds)


def binds_of(name: str, place: Place) -> dict[str, Any]:
    """The parameters of `beyond`."""
    return {f"{name}_xid": str(place.xid), f"{name}_seq": place.seq}


def _seal(row: Any) -> Seal:
    return Seal(
        number=row.number,
        first=Place(int(row.first_xid), row.first_seq),
        last=Place(int(row.last_xid), row.last_seq),
        rows=row.rows,
        sha256=row.sha256,
        at=row.at,
    )


def _moment(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    form: sa.ColumnElement[str] = sa.literal_column("""'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'""")
    return sa.func.to_char(sa.func.timezone(sa.literal_column("'UTC'"), column), form)


def _text(name: str) -> sa.ColumnElement[Any]:
    column = history.c[name]
    return _moment(column) if name == "at" else sa.cast(column, sa.Text)


def beyond(word: str, name: str) -> sa.TextClause:
    """The rows that stand so (`>`, `<=`) beside a place that is bound under a name."""
    return sa.text(f"(xid, seq) {word} (CAST(CAST(:{name}_xid AS text) AS xid8), :{name}_seq)")


_HORIZON = sa.text("pg_snapshot_xmin(pg_current_snapshot())")
AFTER_PLACE = beyond(">", "after")
_AMONG = sa.text(
    "(CAST(:first AS bigint) IS NULL OR seq >= :first) AND (CAST(:last AS bigint) IS NULL OR seq <= :last)"
)
TEXTS = array([_text(name) for name in COLUMNS]).label("texts")
_ROWS = (
    sa.select(TEXTS)
    .where(AFTER_PLACE, _AMONG)
    .order_by(history.c.xid, history.c.seq)
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)
_SEAL = sa.select(
    *(seals.c[name] for name in ("number", "first_seq", "last_seq", "rows", "sha256")),
    *(sa.cast(seals.c[name], sa.Text).label(name) for name in ("first_xid", "last_xid")),
    _moment(seals.c.at).label("at"),
)
_NUMBERS: Any = sa.ARRAY(sa.BigInteger)

_TAKE_TURN = Statement(sa.text("SELECT pg_try_advisory_xact_lock(hashtextextended('holdshort.seal', 0)) AS mine"))
_NEWEST = Statement(
    _SEAL.add_columns((sa.literal_column("last_xid < pg_snapshot_xmin(pg_current_snapshot())")).label("ours"))
    .order_by(seals.c.number.desc())
    .limit(1)
)
_ADD = Statement(
    sa.text("""
INSERT INTO seals (number, first_xid, first_seq, last_xid, last_seq, rows, sha256, at)
VALUES (:number, CAST(CAST(:first_xid AS text) AS xid8), :first_seq, CAST(CAST(:last_xid AS text) AS xid8), :last_seq,
        :rows, :sha256, CAST(CAST(:at AS text) AS timestamptz))
""")
)
_AFTER = Statement(
    _SEAL.where(seals.c.number > sa.bindparam("after"))
    .order_by(seals.c.number)
    .limit(sa.bindparam("limit", type_=sa.BigInteger))
)
_OF_NUMBERS = Statement(_SEAL.where(seals.c.number == sa.any_(sa.bindparam("numbers", type_=_NUMBERS))))
_ROWS_TO = Statement(_ROWS.where(beyond("<=", "upto")))
_ROWS_AFTER = Statement(_ROWS.where(history.c.xid < _HORIZON))
_some = sa.select(history.c.at).where(AFTER_PLACE).limit(sa.bindparam("most", type_=sa.BigInteger)).subquery()
_waits = sa.extract("epoch", sa.func.clock_timestamp() - sa.func.min(_some.c.at))
_LEFT_AFTER = Statement(
    sa.select(
        sa.func.count().label("rows"), sa.cast(sa.func.coalesce(_waits, 0), sa.Double).label("seconds")
    ).select_from(_some)
)
