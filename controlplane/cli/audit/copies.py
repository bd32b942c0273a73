"""Copies of history, as `audit export` writes them: read row by row, and compared with the seals that stand."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from controlplane.cli.database import Open
from controlplane.cli.faults import Fault
from controlplane.domain.audit import Checker
from controlplane.domain.seals import COLUMNS, Seal, Texts, place_of
from controlplane.services import pruning


async def check_copy(open_: Open, file: Path, after: Seal | None, upto: int) -> None:
    """Make sure that a copy has the rows of every seal after one, up to another, as they were sealed.

    Raises:
        Fault: it has not; names the first seal that does not fit.
    """
    checker, missing = Checker(previous=after), "the copy is not of these rows, or not whole"
    with file.open("rb") as lines:
        rows = _rows(lines)
        row = next(rows, None)
        async for seal in _seals(open_, after, upto):
            while row is not None and place_of(row) <= seal.last:
                if place_of(row) >= seal.first:
                    checker.row(row)
                row = next(rows, None)
            for finding in checker.seal(seal):
                raise Fault(f"{file}, seal {seal.number}: {finding.what}; {missing}: run `holdshort audit export` anew")


async def _seals(open_: Open, after: Seal | None, upto: int) -> AsyncIterator[Seal]:
    while True:
        async with open_() as conn:
            page = await pruning.following(conn, after, upto)
        if not page:
            return
        for seal in page:
            yield seal
        after = page[-1]


def _rows(lines: Iterator[bytes]) -> Iterator[Texts]:
    """The rows among the lines; what is no row (seals, a line that was cut off) is passed over."""
    for line in lines:
        try:
            row = _DECODER.decode(line)
        except msgspec.MsgspecError:
            continue
        yield [_text(getattr(row, name)) for name in COLUMNS]


def _text(value: Any) -> str | None:
    """A value as PostgreSQL writes it; JSON stands so in the line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Raw):
        return bytes(value).decode()
    return None if value is None else str(value)


_KINDS: dict[str, Any] = {"seq": int, "settles": bool, "data": Raw}
_ROW: Any = msgspec.defstruct("_ROW", [(name, _KINDS.get(name, str | None)) for name in COLUMNS], frozen=True)
_DECODER = msgspec.json.Decoder(_ROW)
