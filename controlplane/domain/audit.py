"""Auditing: rows of history compared with their seals, and seals with the heads that were kept elsewhere."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec
from msgspec import Struct

from controlplane.domain.pruning import Pruning, Tally, untruth
from controlplane.domain.seals import NOTHING, Digest, Place, Seal, Texts, place_of


class Fault(StrEnum):
    """What can be wrong with a history."""

    CHANGED = "changed"
    REMOVED = "removed"
    INSERTED = "inserted"
    SEALS_MISSING = "seals_missing"
    CUT_OFF = "cut_off"
    REWRITTEN = "rewritten"
    UNGUARDED = "unguarded"
    MISPLACED = "misplaced"
    NOT_PRUNED = "not_pruned"
    PRUNING_UNTRUE = "pruning_untrue"


class Finding(Struct, frozen=True, kw_only=True):
    """One fault: in which seal it was seen, between which numbers of rows, and in words."""

    fault: Fault
    what: str
    seal: int | None = None
    first_seq: int | None = None
    last_seq: int | None = None


class Checker:
    """Takes rows and seals in their order, a seal after its rows, and says what does not fit.

    It holds one seal's digest, however long the history is. Each seal is judged by the one before it as that stands, so
    that one changed row is one finding. Seals that were pruned have no rows, and are compared with the record of that.
    """

    def __init__(self, pruned: Pruning | None = None, previous: Seal | None = None) -> None:
        """Nothing seen yet.

        Args:
            pruned: the newest pruning.
            previous: the seal that stands before the first one that is to come.
        """
        self.rows = 0
        self.seals = 0
        self._pruned = pruned
        self._tally = Tally()
        self._previous = previous
        self._digest = Digest(NOTHING if previous is None else previous.sha256)
        self._count = 0
        self._ends: tuple[Place, Place] | None = None

    @property
    def number(self) -> int:
        """That of the last seal that came."""
        return 0 if self._previous is None else self._previous.number

    def row(self, row: Texts) -> None:
        """The next row."""
        place = place_of(row)
        self._digest.add(row)
        self._count += 1
        self._ends = (self._ends[0] if self._ends else place, place)

    def seal(self, seal: Seal) -> list[Finding]:
        """The seal of the rows since the one before."""
        found = self._gap(seal)
        if self._pruned is not None and seal.number <= self._pruned.seal:
            found += self._empty(seal)
        else:
            digest = self._digest.close(seal.number, seal.at, seal.rows)
            found = found or self._compared(seal, digest)
            self.rows += self._count
            self.seals += 1
        self._previous = seal
        self._digest, self._count, self._ends = Digest(seal.sha256), 0, None
        return found

    def ended(self) -> list[Finding]:
        """What is found where no seal follows: of the record of a pruning."""
        what = None if self._pruned is None else untruth(self._pruned, self._tally)
        if self._pruned is None or what is None:
            return []
        return [Finding(fault=Fault.PRUNING_UNTRUE, what=what, seal=self._pruned.seal)]

    def _empty(self, seal: Seal) -> list[Finding]:
        self._tally.add(seal)
        if self._count == 0:
            return []
        return [self._finding(Fault.NOT_PRUNED, f"{_rows(self._count)} there that {_are(self._count)} pruned", seal)]

    def _gap(self, seal: Seal) -> list[Finding]:
        due = 1 if self._previous is None else self._previous.number + 1
        if seal.number == due:
            return []
        gone = f"seal {due}" if seal.number == due + 1 else f"seals {due} to {seal.number - 1}"
        what = f"{gone} missing: nothing says whether the rows up to seal {seal.number}, with it, are what they were"
        return [self._finding(Fault.SEALS_MISSING, what, seal)]

    def _compared(self, seal: Seal, digest: bytes) -> list[Finding]:
        off = self._count - seal.rows
        if off < 0:
            return [self._finding(Fault.REMOVED, f"{_rows(-off)} of {seal.rows} removed", seal)]
        if off > 0:
            return [self._finding(Fault.INSERTED, f"{_rows(off)} inserted among {seal.rows}", seal)]
        if digest != seal.sha256 or self._ends != (seal.first, seal.last):
            what = f"{_rows(seal.rows)}, or the seal itself, changed or put into another order"
            return [self._finding(Fault.CHANGED, what, seal)]
        return []

    def _finding(self, fault: Fault, what: str, seal: Seal) -> Finding:
        seqs = [place.seq for place in (seal.first, seal.last, *(self._ends or ()))]
        return Finding(fault=fault, what=what, seal=seal.number, first_seq=min(seqs), last_seq=max(seqs))


class Head(Struct, frozen=True, kw_only=True):
    """A seal as it is written elsewhere: whoever rewrites the database does not reach it."""

    number: int
    sha256: str
    last_seq: int
    at: str


class HeadsChecker:
    """Compares heads, in any order, with the seals that stand now."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.heads = 0
        self._agreed = 0
        self._beyond: Head | None = None
        self._other: Seal | None = None

    def compare(self, heads: Sequence[Head], stored: Mapping[int, Seal], newest: int) -> None:
        """Take up heads, the seals that stand under their numbers, and the number of the newest seal."""
        for head in heads:
            self.heads += 1
            seal = stored.get(head.number)
            if head.number > newest:
                self._beyond = max(self._beyond or head, head, key=_number)
            elif seal is not None and seal.sha256.hex() == head.sha256:
                self._agreed = max(self._agreed, head.number)
            elif seal is not None:
                self._other = min(self._other or seal, seal, key=_number)

    def findings(self, newest: Seal | None) -> list[Finding]:
        """What the heads say of the seals that stand."""
        found = []
        if self._other is not None:
            agreed = f"after seal {self._agreed}" if self._agreed < self._other.number else "somewhere"
            what = f"another seal {self._other.number} was written down elsewhere: history was rewritten {agreed}"
            found.append(
                Finding(
                    fault=Fault.REWRITTEN,
                    what=what,
                    seal=self._other.number,
                    first_seq=self._other.first.seq,
                    last_seq=None if newest is None else newest.last.seq,
                )
            )
        if self._beyond is not None:
            number, last_seq = (0, 0) if newest is None else (newest.number, newest.last.seq)
            what = (
                f"the end was cut off: seal {self._beyond.number} was written down elsewhere, here {number} is the last"
            )
            found.append(
                Finding(
                    fault=Fault.CUT_OFF,
                    what=what,
                    seal=number + 1,
                    first_seq=last_seq + 1,
                    last_seq=self._beyond.last_seq,
                )
            )
        return found


def head_line(seal: Seal) -> bytes:
    """A head as one line of JSON."""
    head = Head(number=seal.number, sha256=seal.sha256.hex(), last_seq=seal.last.seq, at=seal.at)
    return msgspec.json.encode(head) + b"\n"


def read_head(line: bytes) -> Head | None:
    """A head from its line; None for a line that is none, such as one that a crash cut off."""
    try:
        return msgspec.json.decode(line, type=Head)
    except msgspec.MsgspecError:
        return None


def _number(one: Head | Seal) -> int:
    return one.number


def _are(count: int) -> str:
    return "is said to be" if count == 1 else "are said to be"


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
