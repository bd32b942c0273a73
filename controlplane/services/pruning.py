"""Pruning history: whole seals from the oldest on, each checked as its rows leave, and the record of it."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct, to_builtins

from controlplane.domain.audit import Checker, Finding
from controlplane.domain.errors import HoldshortError
from controlplane.domain.events import Actor, Fact, FactType
from controlplane.domain.pruning import Pruning, Tally, untruth
from controlplane.domain.seals import BEGINNING, Place, Seal, moment
from controlplane.services.audit import in_order
from controlplane.storage import clock, history, pruning, seals
from controlplane.storage.engine import Connection

SEALS_AT_ONCE = 20
ROWS_AT_ONCE = 5000
LOCK_TIMEOUT = "4s"


class NotOwner(HoldshortError):
    """This role does not own history, so it may not prune it; set HOLDSHORT_MIGRATION_DATABASE_URL to the owner's."""

    code = "not_owner"


class PrunedByAnother(HoldshortError):
    """Another one is pruning this history; wait until it is done."""

    code = "pruned_by_another"


class NotYet(HoldshortError):
    """The date lies in the future; name one that has passed."""

    code = "not_yet"


class HistoryUntrue(HoldshortError):
    """History is not what was sealed, so it is not pruned: the rows are evidence; run `holdshort audit verify`."""

    code = "history_untrue"

    def __init__(self, seal: int, what: str) -> None:
        """Name the seal, and what is wrong."""
        super().__init__(
            f"Seal {seal}: {what}. What does not fit is not pruned, as it is evidence; run `holdshort audit verify`."
        )


class Stop(Struct, frozen=True):
    """The first seal that stays, and why; `seq` is the row that keeps it."""

    seal: int
    why: str
    seq: int | None = None


class Part(Struct, frozen=True):
    """Some seals that may be pruned, in order, from the first that was not; `stop` is why no more may follow."""

    seals: Sequence[Seal]
    stop: Stop | None = None


class Pruned(Struct, frozen=True):
    """What one transaction pruned: up to which seal, and how many rows."""

    seal: int
    rows: int


async def begin(conn: Connection, before: datetime) -> Seal | None:
    """Make sure that pruning may begin; return the last seal that was pruned before.

    Raises:
        NotOwner: only the owner of the tables may.
        NotYet: `before` lies in the future.
        HistoryUntrue: what is marked as pruned is not recorded.
    """
    if not await pruning.is_owner(conn):
        raise NotOwner
    if before > await clock.now(conn):
        raise NotYet
    last, _ = await _standing(conn)
    return last


async def next_part(conn: Connection, after: Seal | None, before: datetime) -> Part:
    """The seals after one that may be pruned: sealed before a moment, and of nothing that goes on."""
    ahead = await seals.after(conn, 0 if after is None else after.number, SEALS_AT_ONCE)
    old = [seal for seal in ahead if seal.at < moment(before)]
    stop = None if len(old) == len(ahead) else Stop(ahead[len(old)].number, f"it is of {ahead[len(old)].at}")
    if not old:
        return Part([], stop)
    kept = await pruning.first_kept(conn, _end(after), old[-1].last, before)
    if kept is None:
        return Part(old, stop)
    free = [seal for seal in old if seal.last < kept.place]
    return Part(free, Stop(old[len(free)].number, kept.why, kept.place.seq))


async def prune(conn: Connection, before: datetime, upto: int, actor: Actor, *, exported: bool) -> Pruned | None:
    """Prune some of the seals that follow what was pruned, and record it; None when nothing up to `upto` is left.

    The rows are compared with their seals as they leave. Killed at any point, it is done or has not begun.

    Args:
        conn: the open transaction; nobody waits for it but another one that prunes.
        before: only what is older.
        upto: the last seal that may be pruned.
        actor: who does it.
        exported: a copy of the rows was compared with their seals.

    Raises:
        PrunedByAnother: it is not our turn.
        HistoryUntrue: the rows are not those that were sealed.
    """
    if not await pruning.take_turn(conn, LOCK_TIMEOUT):
        raise PrunedByAnother
    last, tally = await _standing(conn)
    part = await next_part(conn, last, before)
    taken = _at_once([seal for seal in part.seals if seal.number <= upto])
    if not taken:
        return None
    await pruning.mark(conn, taken[-1].number)
    rows = await pruning.take_out(conn, _end(last), taken[-1].last)
    checker = Checker(previous=last)
    for each in in_order(rows, taken):
        if isinstance(each, Seal):
            _refuse(checker.seal(each))
            tally.add(each)
        else:
            checker.row(each)
    data = to_builtins(tally.record(await pruning.who(conn)))
    about = data | {"before": moment(before), "rows_now": len(rows), "exported": exported}
    await history.record(conn, Fact(type=FactType.HISTORY_PRUNED, actor=actor, data=about))
    return Pruned(taken[-1].number, len(rows))


async def newest(conn: Connection) -> Pruning | None:
    """The newest pruning."""
    return await pruning.newest(conn)


async def following(conn: Connection, seal: Seal | None, upto: int) -> list[Seal]:
    """The next seals after one, up to a number."""
    ahead = await seals.after(conn, 0 if seal is None else seal.number, SEALS_AT_ONCE)
    return [each for each in ahead if each.number <= upto]


async def _standing(conn: Connection) -> tuple[Seal | None, Tally]:
    """The last pruned seal, and the tally of all up to it."""
    found = await pruning.newest(conn)
    if found is None:
        return None, Tally()
    last = (await seals.of_numbers(conn, [found.seal])).get(found.seal)
    tally = Tally(found.record)
    what = untruth(found, tally)
    if what is None and (last is None or last.sha256.hex() != tally.sha256):
        what = "it is not the one that history recorded with the pruning"
    if what is not None:
        raise HistoryUntrue(found.seal, what)
    return last, tally


def _at_once(free: Sequence[Seal]) -> list[Seal]:
    """As many as fit into one transaction, but one at least."""
    taken: list[Seal] = []
    for seal in free:
        if taken and sum(each.rows for each in taken) + seal.rows > ROWS_AT_ONCE:
            break
        taken.append(seal)
    return taken


def _refuse(found: Sequence[Finding]) -> None:
    for finding in found:
        raise HistoryUntrue(finding.seal or 0, finding.what)


def _end(seal: Seal | None) -> Place:
    return BEGINNING if seal is None else seal.last
