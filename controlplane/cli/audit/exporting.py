"""Exporting: history as lines of JSON, with its seals between, behind a line for what was pruned."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

import msgspec
from msgspec import Raw

from controlplane.cli.database import opened
from controlplane.cli.faults import Fault
from controlplane.domain.pruning import Pruning
from controlplane.domain.seals import COLUMNS, Seal, Texts
from controlplane.services import audit, pruning
from controlplane.services.audit import Walked
from controlplane.storage.seals import EVERY, Range


async def export_lines(url: str, seqs: Range, out: BinaryIO) -> None:
    """Write what there is, a page at a time.

    Args:
        url: the database.
        seqs: which rows; of the seals those of rows that are written, or every one whose rows were not pruned.
        out: where to.

    Raises:
        Fault: some rows were pruned meanwhile.
    """
    walk = audit.Walk(seqs=seqs)
    async with opened(url) as transaction:
        async with transaction() as conn:
            pruned = await pruning.newest(conn)
        lines = _Lines(every=seqs == EVERY, pruned=0 if pruned is None else pruned.seal)
        if pruned is not None:
            out.write(pruned_line(pruned))
        while True:
            async with transaction() as conn:
                page: Sequence[Walked] = await walk.sealed(conn) or await walk.unsealed(conn)
            if not page:
                break
            out.writelines(lines.of(page))
        async with transaction() as conn:
            now = await pruning.newest(conn)
    out.flush()
    if now != pruned:
        raise Fault("history was pruned meanwhile, so this may not be all that it was; export it again")


class _Lines:
    """Rows and seals as lines; a seal of which no row was written is left out, unless every one is wanted."""

    def __init__(self, *, every: bool, pruned: int) -> None:
        self._every = every
        self._pruned = pruned
        self._written = False

    def of(self, page: Sequence[Walked]) -> Iterator[bytes]:
        for each in page:
            if not isinstance(each, Seal):
                self._written = True
                yield row_line(each)
            elif self._written or (self._every and each.number > self._pruned):
                self._written = False
                yield seal_line(each)


def row_line(row: Texts) -> bytes:
    """A row as one line; its JSON stands as PostgreSQL writes it, since that is what was sealed."""
    document: dict[str, object] = dict(zip(COLUMNS, row, strict=True))
    document["seq"] = int(row[0] or 0)
    document["settles"] = document["settles"] == "true"
    document["data"] = Raw(str(document["data"]).encode())
    return msgspec.json.encode(document) + b"\n"


def pruned_line(pruned: Pruning) -> bytes:
    """What was pruned before, as one line: the seal that the first one here follows, and its digest."""
    return msgspec.json.encode({"pruned": pruned}) + b"\n"


def seal_line(seal: Seal) -> bytes:
    """A seal as one line."""
    document = {
        "seal": seal.number,
        "rows": seal.rows,
        "first": {"xid": str(seal.first.xid), "seq": seal.first.seq},
        "last": {"xid": str(seal.last.xid), "seq": seal.last.seq},
        "sha256": seal.sha256.hex(),
        "at": seal.at,
    }
    return msgspec.json.encode(document) + b"\n"
