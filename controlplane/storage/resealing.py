"""Sealed secrets wherever they stand, by pages: each table that has some is walked by its key, from its first row on.

Rows are locked only where nobody else has them, so that no decision ever waits behind a lock that waits.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from controlplane.domain.vault import PREFIX
from controlplane.storage.access_tables import sender_secrets
from controlplane.storage.engine import Connection
from controlplane.storage.rows import bound_texts
from controlplane.storage.tables import approvals, deliveries


class Place(StrEnum):
    """Where secrets stand: those that senders sign with, and those that callbacks are signed with."""

    SENDERS = "senders"
    APPROVALS = "approvals"
    DELIVERIES = "deliveries"


class Page(Struct, frozen=True):
    """A stretch of rows in the order of their keys, from behind `after` up to `last`."""

    place: Place
    after: str
    last: str


class Sealed(Struct, frozen=True):
    """A secret as it stands; `sender` is whose it is where senders' stand."""

    id: str
    text: str
    sender: str | None


_COLUMNS: dict[Place, tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]]] = {
    Place.SENDERS: (sender_secrets.c.secret_id, sender_secrets.c.sealed),
    Place.APPROVALS: (approvals.c.approval_id, approvals.c.callback_secret),
    Place.DELIVERIES: (deliveries.c.delivery_id, deliveries.c.secret),
}
_TABLES = {Place.SENDERS: sender_secrets, Place.APPROVALS: approvals, Place.DELIVERIES: deliveries}


async def page(conn: Connection, place: Place, after: str, rows: int) -> Page | None:
    """The next `rows` rows behind a key; None when there are no more."""
    key, _ = _COLUMNS[place]
    stretch = sa.select(key.label("key")).where(key > after).order_by(key).limit(rows).subquery()
    found = await conn.row(sa.select(sa.func.max(stretch.c.key).label("last")))
    return None if found is None or found.last is None else Page(place, after, found.last)


async def outdated(conn: Connection, page: Page, mark: str) -> int:
    """How many secrets of a page do not begin with `mark`."""
    statement = sa.select(sa.func.count().label("n")).where(*_within(page), _other_than(page.place, mark))
    row = await conn.row(statement)
    return 0 if row is None else int(row.n)


async def take(conn: Connection, page: Page, mark: str) -> list[Sealed]:
    """Lock those of them that nobody else has locked."""
    key, secret = _COLUMNS[page.place]
    sender = sender_secrets.c.sender if page.place is Place.SENDERS else sa.null()
    statement = (
        sa.select(key.label("id"), secret.label("text"), sender.label("sender"))
        .where(*_within(page), _other_than(page.place, mark))
        .order_by(key)
        .with_for_update(key_share=True, skip_locked=True)
    )
    return [Sealed(row.id, row.text, row.sender) for row in await conn.rows(statement)]


async def replace(conn: Connection, place: Place, texts: Mapping[str, str]) -> None:
    """Put other texts in the place of those that were taken, by their ids."""
    key, secret = _COLUMNS[place]
    new = sa.func.unnest(bound_texts("ids"), bound_texts("texts")).table_valued("id", "text").render_derived("new")
    statement = sa.update(_TABLES[place]).where(key == new.c.id).values({secret.name: new.c.text})
    await conn.run(statement, {"ids": list(texts), "texts": list(texts.values())})


async def by_master_key(conn: Connection, page: Page) -> Sequence[tuple[str | None, int]]:
    """How many secrets of a page each master key sealed; None for those that are not sealed."""
    _, secret = _COLUMNS[page.place]
    named = sa.case((sa.func.starts_with(secret, PREFIX), sa.func.split_part(secret, ".", 2)))
    statement = sa.select(named.label("name"), sa.func.count().label("n")).where(*_within(page), secret.is_not(None))
    return [(row.name, int(row.n)) for row in await conn.rows(statement.group_by(sa.text("1")))]


def _within(page: Page) -> tuple[sa.ColumnElement[bool], ...]:
    key, _ = _COLUMNS[page.place]
    return (key > page.after, key <= page.last)


def _other_than(place: Place, mark: str) -> sa.ColumnElement[bool]:
    _, secret = _COLUMNS[place]
    return sa.and_(secret.is_not(None), sa.not_(sa.func.starts_with(secret, mark)))
