"""Copies of history, as `audit export` writes them: read row by row, and compared with the seals that stand."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from controlplane.cli.database import Open
from controlplane.cli.faults import Fault
from controlplane.domain.audit import Checker, Finding
from controlplane.domain.seals import COLUMNS, Seal, Texts, place_of
from controlplane.services import pruning


async def check_copy(open_: Open, file: Path, after: Seal | None, upto: int) -> None:
    """Make sure that a copy has the rows of every seal after one, up to another, as they were sealed.

    Raises:
        Fault: it has not; names the first seal that does not fit.
    """
    with file.open("rb") as lines:
        copy = _Copy(_rows(lines), Checker(previous=after))
        while True:
            async with open_() as conn:
                page = await pruning.following(conn, after, upto)
            if not page:
                return
            for finding in copy.compared(page):
                missing = "the copy is not of these rows, or not whole; run `holdshort audit export` anew"
                raise Fault(f"{file}, seal {finding.seal}: {finding.what}: {missing}")
            after = page[-1]


class _Copy:
    """A copy that is read on, as far as the seals go."""

    def __init__(self, rows: Iterator[Texts], checker: Checker) -> None:
        self._rows = rows
        self._checker = checker
        self._next = next(rows, None)

    def compared(self, page: Sequence[Seal]) -> Iterator[Finding]:
        """What does not fit these seals."""
        for seal in page:
            self._read_to(seal)
            yield from self._checker.seal(seal)

    def _read_to(self, seal: Seal) -> None:
        """Take up the rows of a seal; those before it, as of what was pruned earlier, are passed over."""
        while self._next is not None and place_of(self._next) <= seal.last:
            if place_of(self._next) >= seal.first:
                self._checker.row(self._next)
            self._next = next(self._rows, None)


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
