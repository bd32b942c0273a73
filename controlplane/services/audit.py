"""The audit trail: history is sealed as it grows, and walked from its beginning to be compared or taken out."""

from collections.abc import Sequence

from msgspec import Struct

from controlplane.domain.audit import Fault, Finding, Head, HeadsChecker
from controlplane.domain.errors import HoldshortError
from controlplane.domain.seals import BEGINNING, Seal, Texts, moment, place_of
from controlplane.domain.seals import seal as sealed
from controlplane.storage import append_only, clock, seals
from controlplane.storage.append_only import Guard
from controlplane.storage.engine import Connection
from controlplane.storage.seals import EVERY, Left, Range

SEALS_AT_ONCE = 500
COUNTED_AT_MOST = 100_000

Walked = Texts | Seal


class HistoryMisplaced(HoldshortError):
    """This database counts its transactions from below those of its history, as after a restore into another cluster.

    Nothing new can be sealed or streamed; stop it and raise its counter with `pg_resetwal`.
    """

    code = "history_misplaced"

    def __init__(self, last_xid: int) -> None:
        """Name the number that the counter must pass."""
        super().__init__(
            "This database counts its transactions from below those of its history, as after a restore into another"
            " cluster, so nothing new is sealed; stop it and raise its counter with pg_resetwal"
            f" (--epoch={last_xid >> 32} --next-transaction-id={(last_xid & 0xFFFFFFFF) + 1})."
        )


async def seal(conn: Connection, limit: int) -> int:
    """Seal up to `limit` rows that follow what is sealed; return how many, none too while another process does it.

    Rows of transactions that are open, or came after one that is, are left: none can be passed over.

    Raises:
        HistoryMisplaced: nothing can be sealed in this database.
    """
    if not await seals.take_turn(conn):
        return 0
    found = await seals.newest(conn)
    if found is not None and not found.ours:
        raise HistoryMisplaced(found.seal.last.xid)
    previous = None if found is None else found.seal
    rows = await seals.rows_after(conn, BEGINNING if previous is None else previous.last, limit)
    if rows:
        await seals.add(conn, sealed(previous, rows, moment(await clock.now(conn))))
    return len(rows)


async def newest(conn: Connection) -> Seal | None:
    """The last seal."""
    found = await seals.newest(conn)
    return None if found is None else found.seal


class Walk:
    """A way through history from its beginning: rows and seals in their order, each seal after its rows.

    A page is read in one transaction; what is sealed stands still, so the pages fit together.
    """

    def __init__(self, limit: int = 1000, seqs: Range = EVERY) -> None:
        """Stand at the beginning.

        Args:
            limit: rows a page.
            seqs: which rows; the seals are passed all the same.
        """
        self.number = 0
        self.place = BEGINNING
        self._limit = limit
        self._seqs = seqs

    async def sealed(self, conn: Connection) -> list[Walked]:
        """The next page of what is sealed; empty at the end of it."""
        ahead = await seals.after(conn, self.number, SEALS_AT_ONCE)
        if not ahead:
            return []
        rows = await seals.rows_to(conn, self.place, ahead[-1].last, self._limit, self._seqs)
        more = len(rows) == self._limit
        upto = place_of(rows[-1]) if more else ahead[-1].last
        page = list(in_order(rows, [each for each in ahead if not more or each.last <= upto]))
        self.number = max([self.number, *(each.number for each in page if isinstance(each, Seal))])
        self.place = max(self.place, upto)
        return page

    async def unsealed(self, conn: Connection) -> list[Texts]:
        """The next page of rows that no seal covers yet; empty at the end."""
        rows = await seals.rows_after(conn, self.place, self._limit, self._seqs)
        if rows:
            self.place = place_of(rows[-1])
        return rows


class Standing(Struct, frozen=True, kw_only=True):
    """How a history stands beside what its seals say: who guards it, and what they do not cover yet."""

    newest: Seal | None
    unsealed: Left
    guard: Guard
    findings: list[Finding]


async def standing(conn: Connection) -> Standing:
    """What can be said of a history without reading it."""
    found = await seals.newest(conn)
    last = None if found is None else found.seal
    guard = await append_only.guard(conn)
    findings = []
    if not guard.triggers:
        what = "history is open to changes: its triggers are off, or gone"
        findings.append(Finding(fault=Fault.UNGUARDED, what=what))
    if found is not None and not found.ours:
        what = HistoryMisplaced(found.seal.last.xid).message
        findings.append(Finding(fault=Fault.MISPLACED, what=what, seal=found.seal.number))
    return Standing(
        newest=last,
        unsealed=await seals.left_after(conn, BEGINNING if last is None else last.last, COUNTED_AT_MOST),
        guard=guard,
        findings=findings,
    )


async def compare_heads(conn: Connection, checker: HeadsChecker, heads: Sequence[Head]) -> None:
    """Compare some heads, read before this transaction began, with the seals that stand."""
    last = await newest(conn)
    stored = await seals.of_numbers(conn, [head.number for head in heads])
    checker.compare(heads, stored, 0 if last is None else last.number)


def in_order(rows: Sequence[Texts], ended: Sequence[Seal]) -> list[Walked]:
    """Rows and the seals that end among them, each seal after its rows."""
    page: list[Walked] = []
    at = 0
    for seal in ended:
        while at < len(rows) and place_of(rows[at]) <= seal.last:
            page.append(rows[at])
            at += 1
        page.append(seal)
    return [*page, *rows[at:]]
