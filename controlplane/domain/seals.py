"""Seals: history chained by SHA-256, so that whoever changes a row afterwards is found.

A seal covers the rows after the seal before it, in the order of the stream: by transaction, then by number. Its digest
is SHA-256 over these lines, each ended by one line feed, in UTF-8:

    holdshort seal 1
    the digest of the seal before it in hex, or 64 zeros for the first
    one line for each row: its `COLUMNS`
    one line for the seal: its number, its moment, its count of rows

In a line a null is `-` and anything else `<bytes>:<text>`, with commas between. Numbers are decimal, flags `true` and
`false`, moments UTC as in `2026-01-31T23:59:59.000001Z`, JSON as PostgreSQL writes `jsonb`. This never changes: another
form would be `holdshort seal 2`.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct

COLUMNS = (
    "seq",
    "xid",
    "at",
    "type",
    "execution_id",
    "approval_id",
    "approval_request_id",
    "node_id",
    "actor_kind",
    "actor_name",
    "actor_via",
    "actor_address",
    "settles",
    "data",
    "actor_id",
)
NOTHING = bytes(32)
_FORM = b"holdshort seal 1\n"

Texts = Sequence[str | None]


class Place(NamedTuple):
    """Where a row stands in the stream."""

    xid: int
    seq: int


BEGINNING = Place(0, 0)


class Seal(Struct, frozen=True, kw_only=True):
    """A link of the chain: from which row to which, how many, their digest, and when they were sealed."""

    number: int
    first: Place
    last: Place
    rows: int
    sha256: bytes
    at: str


class Digest:
    """The digest of one seal, row by row."""

    def __init__(self, previous: bytes) -> None:
        """Begin after the seal with this digest (`NOTHING`: there is none)."""
        self._hash = hashlib.sha256(_FORM + previous.hex().encode() + b"\n")

    def add(self, row: Texts) -> None:
        """Take up the next row, its `COLUMNS` as text."""
        self._hash.update(encoded(row))

    def close(self, number: int, at: str, rows: int) -> bytes:
        """The digest of the seal with this number, moment and count."""
        self._hash.update(encoded((str(number), at, str(rows))))
        return self._hash.digest()


def encoded(texts: Texts) -> bytes:
    """One line of what is digested."""
    return (",".join(["-" if text is None else f"{_size(text)}:{text}" for text in texts]) + "\n").encode()


def place_of(row: Texts) -> Place:
    """Where a row stands, by its first two columns."""
    return Place(int(row[1] or 0), int(row[0] or 0))


def moment(at: datetime) -> str:
    """A moment as it is digested."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seal(previous: Seal | None, rows: Sequence[Texts], at: str) -> Seal:
    """Seal rows, at least one, that come after everything that is sealed."""
    number, before = (1, NOTHING) if previous is None else (previous.number + 1, previous.sha256)
    made = Digest(before)
    for row in rows:
        made.add(row)
    return Seal(
        number=number,
        first=place_of(rows[0]),
        last=place_of(rows[-1]),
        rows=len(rows),
        sha256=made.close(number, at, len(rows)),
        at=at,
    )


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
