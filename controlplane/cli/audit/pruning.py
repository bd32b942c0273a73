"""Pruning: the oldest seals are looked through, a copy of their rows is compared, then the rows leave part by part."""

import time
from datetime import datetime
from pathlib import Path

import click
from msgspec import Struct

from controlplane.cli.audit.copies import check_copy
from controlplane.cli.database import OPERATOR, Open, opened
from controlplane.cli.faults import Fault, reason_of
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.domain.seals import Seal
from controlplane.services import pruning
from controlplane.services.pruning import Stop

SAID_EVERY_SECONDS = 5.0


class Wanted(Struct, frozen=True, kw_only=True):
    """What is to be pruned: what is older than `before`; `copy` is a file that has it, None when there need be none."""

    before: datetime
    copy: Path | None = None
    dry_run: bool = False


class Done(Struct, kw_only=True):
    """What was pruned, or would be: seals and their rows, the last of those that are; why the next one stays."""

    dry_run: bool
    seals: int = 0
    rows: int = 0
    pruned_to: int = 0
    stopped: Stop | None = None


async def prune_history(url: str, wanted: Wanted) -> Done:
    """Prune, and say on standard error how far it is.

    Args:
        url: the database, as the owner of its tables.
        wanted: what.

    Raises:
        Fault: the copy does not fit; or the database went away, and what was pruned until then is.
        HoldshortError: as `services.pruning`.
    """
    async with opened(url) as open_:
        return await _Pruning(open_, wanted).run()


class _Pruning:
    """One pruning, and how far it is."""

    def __init__(self, open_: Open, wanted: Wanted) -> None:
        self._open = open_
        self._wanted = wanted
        self._said = time.monotonic()

    async def run(self) -> Done:
        async with self._open() as conn:
            begun = await pruning.begin(conn, self._wanted.before)
        plan = await self._plan(begun)
        if self._wanted.dry_run or plan.seals == 0:
            return plan
        if self._wanted.copy is not None:
            await check_copy(self._open, self._wanted.copy, begun, plan.pruned_to)
        return await self._prune(begun, plan)

    async def _plan(self, after: Seal | None) -> Done:
        """What may be pruned now."""
        plan = Done(dry_run=self._wanted.dry_run, pruned_to=_number(after))
        while True:
            async with self._open() as conn:
                part = await pruning.next_part(conn, after, self._wanted.before)
            plan.seals += len(part.seals)
            plan.rows += sum(each.rows for each in part.seals)
            after = part.seals[-1] if part.seals else after
            plan.pruned_to, plan.stopped = _number(after), part.stop
            if part.stop is not None or not part.seals:
                return plan
            self._say(f"{plan.rows} rows in {plan.seals} seals looked through")

    async def _prune(self, begun: Seal | None, plan: Done) -> Done:
        done = Done(dry_run=False, pruned_to=_number(begun), stopped=plan.stopped)
        while done.pruned_to < plan.pruned_to and await self._part(done, plan):
            done.seals = done.pruned_to - _number(begun)
            self._say(f"{done.rows} of {plan.rows} rows pruned, up to seal {done.pruned_to} of {plan.pruned_to}")
        return done

    async def _part(self, done: Done, plan: Done) -> bool:
        """Prune one part; False when something has come in between that must stay."""
        exported = self._wanted.copy is not None
        try:
            async with self._open() as conn:
                part = await pruning.prune(conn, self._wanted.before, plan.pruned_to, OPERATOR, exported=exported)
        except DatabaseUnavailable as away:
            why = f"the database was away or busy ({reason_of(away.__cause__)}); run this again, it goes on from there"
            raise Fault(f"pruned up to seal {done.pruned_to}, then {why}") from away
        if part is None:
            return False
        done.rows += part.rows
        done.pruned_to = part.seal
        return True

    def _say(self, what: str) -> None:
        if time.monotonic() - self._said >= SAID_EVERY_SECONDS:
            self._said = time.monotonic()
            click.echo(what, err=True)


def _number(seal: Seal | None) -> int:
    return 0 if seal is None else seal.number
