"""Verifying: all of history is walked, page by page, and no more of it is held than a page."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click
from msgspec import Struct

from controlplane.cli.database import Open, opened
from controlplane.domain.audit import Checker, Finding, Head, HeadsChecker, read_head
from controlplane.domain.pruning import Pruning
from controlplane.domain.seals import Seal
from controlplane.services import audit, pruning

KEPT_FINDINGS = 1000
HEADS_AT_ONCE = 1000
SAID_EVERY_SECONDS = 5.0


class Verified(Struct, frozen=True, kw_only=True):
    """What verifying came to; there are `more` findings than those that are kept.

    `rows` and `seals` are those that were compared, without what was `pruned` before.
    """

    rows: int
    seals: int
    last_sealed_at: str | None
    pruned: Pruning | None
    unsealed: int
    unsealed_seconds: float
    heads: int | None
    heads_unreadable: int
    guarded_by_role: bool
    findings: list[Finding]
    more: int


async def verify_history(url: str, heads: Path | None) -> Verified:
    """Compare history with its seals, and those with the heads in a file; says on standard error how far it is."""
    async with opened(url) as transaction:
        found = await _Verifying(transaction).run(heads)
        while found.pruned != await _pruned(transaction):
            click.echo("history was pruned meanwhile; all is compared anew", err=True)
            found = await _Verifying(transaction).run(heads)
        return found


async def _pruned(transaction: Open) -> Pruning | None:
    async with transaction() as conn:
        return await pruning.newest(conn)


class _Verifying:
    """One verification, and what it has found so far."""

    def __init__(self, transaction: Open) -> None:
        self._transaction = transaction
        self._pruned: Pruning | None = None
        self._checker = Checker()
        self._findings: list[Finding] = []
        self._more = 0
        self._said = time.monotonic()

    async def run(self, heads: Path | None) -> Verified:
        await self._walk()
        known, unreadable = HeadsChecker(), 0
        if heads is not None:
            unreadable = await self._compare(heads, known)
        async with self._transaction() as conn:
            standing = await audit.standing(conn)
        self._add([*known.findings(standing.newest), *standing.findings])
        return Verified(
            rows=self._checker.rows,
            seals=self._checker.seals,
            last_sealed_at=None if standing.newest is None else standing.newest.at,
            pruned=self._pruned,
            unsealed=standing.unsealed.rows,
            unsealed_seconds=standing.unsealed.seconds,
            heads=None if heads is None else known.heads,
            heads_unreadable=unreadable,
            guarded_by_role=standing.guard.grants,
            findings=self._findings,
            more=self._more,
        )

    async def _walk(self) -> None:
        walk = audit.Walk()
        async with self._transaction() as conn:
            newest = await audit.newest(conn)
        self._pruned = await _pruned(self._transaction)
        self._checker = Checker(self._pruned)
        while True:
            async with self._transaction() as conn:
                page = await walk.sealed(conn)
            if not page:
                self._add(self._checker.ended())
                return
            for each in page:
                if isinstance(each, Seal):
                    self._add(self._checker.seal(each))
                else:
                    self._checker.row(each)
            self._say(newest)

    async def _compare(self, heads: Path, known: HeadsChecker) -> int:
        """Compare the heads of a file; return how many of its lines are none."""
        unreadable = 0
        with heads.open("rb") as lines:
            while batch := list(islice(lines, HEADS_AT_ONCE)):
                read = list(_heads(batch))
                unreadable += sum(1 for line in batch if line.strip()) - len(read)
                async with self._transaction() as conn:
                    await audit.compare_heads(conn, known, read)
        return unreadable

    def _add(self, found: Sequence[Finding]) -> None:
        room = KEPT_FINDINGS - len(self._findings)
        self._findings += found[:room]
        self._more += len(found[room:])

    def _say(self, newest: Seal | None) -> None:
        if newest is not None and time.monotonic() - self._said >= SAID_EVERY_SECONDS:
            self._said = time.monotonic()
            done = self._checker
            click.echo(f"{done.rows} rows, {done.number} of {max(done.number, newest.number)} seals compared", err=True)


def _heads(lines: Sequence[bytes]) -> Iterator[Head]:
    return (head for head in map(read_head, lines) if head is not None)
