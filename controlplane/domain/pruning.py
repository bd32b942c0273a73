"""Pruning: the rows of the oldest seals leave history, the seals stay, and a record in history says which are gone.

A record covers every seal from the first: what was pruned before it too. So the newest one is enough, and it may be
pruned itself once a newer one stands.
"""

import hashlib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from controlplane.domain.seals import NOTHING, Seal, encoded

Hex = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Record(Struct, frozen=True, kw_only=True):
    """What history says of a pruning: the last seal that it covers and all of them, in digests, and who did it.

    `rows` are those of every covered seal; `by` is the role that was logged in to the database, as that tells it.
    """

    seal: int
    rows: int
    sha256: Hex
    seals_sha256: Hex
    by: str


class Pruning(Struct, frozen=True, kw_only=True):
    """The newest pruning: the last seal that its mark names, and the record beside it, None where there is none."""

    seal: int
    record: Record | None = None
    at: str | None = None


class Tally:
    """Seals from the first on, taken together."""

    def __init__(self, record: Record | None = None) -> None:
        """Nothing yet, or what a record covers."""
        self.seal = 0 if record is None else record.seal
        self.rows = 0 if record is None else record.rows
        self.sha256 = NOTHING.hex() if record is None else record.sha256
        self._seals = NOTHING if record is None else bytes.fromhex(record.seals_sha256)

    def add(self, seal: Seal) -> None:
        """The next seal."""
        ends = (seal.first.xid, seal.first.seq, seal.last.xid, seal.last.seq)
        texts = (str(seal.number), *map(str, ends), str(seal.rows), seal.sha256.hex(), seal.at)
        self._seals = hashlib.sha256(self._seals + encoded(texts)).digest()
        self.seal, self.rows, self.sha256 = seal.number, self.rows + seal.rows, seal.sha256.hex()

    def record(self, by: str) -> Record:
        """What a pruning of all of them is written down as."""
        return Record(seal=self.seal, rows=self.rows, sha256=self.sha256, seals_sha256=self._seals.hex(), by=by)


def read_record(data: Any) -> Record | None:
    """A record from the row of history that holds it; None for what is none."""
    try:
        return msgspec.convert(data, Record)
    except msgspec.ValidationError:
        return None


def untruth(pruning: Pruning, tally: Tally) -> str | None:
    """What is wrong with a pruning, beside the seals up to it as they stand; None when it is true."""
    record = pruning.record
    if record is None:
        return "marked as pruned, and no row of history records it"
    if tally.seal < pruning.seal:
        return f"marked as pruned, and seal {tally.seal} is the last"
    if record.seal != pruning.seal:
        return f"marked as pruned, and history records a pruning up to seal {record.seal}"
    if record.rows != tally.rows:
        return f"history records {record.rows} pruned rows, their seals have {tally.rows}"
    if tally.record(record.by) != record:
        return "the seals of pruned rows are not those that history recorded with the pruning"
    return None
