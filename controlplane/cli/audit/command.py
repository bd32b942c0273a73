"""The commands of `holdshort audit`, and what they print."""

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import click
from msgspec import structs

from controlplane.cli.api import json_option
from controlplane.cli.audit.exporting import export_lines
from controlplane.cli.audit.pruning import Done, Wanted, prune_history
from controlplane.cli.audit.verifying import Verified, verify_history
from controlplane.cli.database import owner_url_of, url_of
from controlplane.cli.environment import prepare
from controlplane.cli.faults import Fault, WrongUsage
from controlplane.cli.output import print_fields, print_json
from controlplane.delivery.heads import is_file
from controlplane.domain.audit import Finding
from controlplane.domain.pruning import Pruning
from controlplane.settings import Settings
from controlplane.storage.seals import Range

LATE_SECONDS = 60.0
NOT_COVERED = (
    "Rows of the last seconds, which no seal covers yet, and seals since the last head, which is a minute old at most.",
    "What the owner of the tables changes who also rewrites the heads: keep those where that owner cannot write.",
    "Rows that were untrue when they were written: whoever has the servers' database role can add some.",
)
WITHOUT_HEADS = (
    "Without heads (HOLDSHORT_AUDIT_HEADS, --heads): an end that was cut off together with its seals, and a history"
    " that was sealed anew."
)
PRUNED = "Rows that were pruned: the seals that stay prove a copy of them (audit export), and nothing without one."
_NUMBER = click.IntRange(1, 2**63 - 1)
_DATE = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S.%f%z"])


@click.group()
def audit() -> None:
    """Prove that history is what was sealed, or take it out. Uses HOLDSHORT_DATABASE_URL; no server need run."""


@audit.command()
@click.option("--heads", "file", type=click.Path(path_type=Path), help="What HOLDSHORT_AUDIT_HEADS wrote.")
@json_option
def verify(file: Path | None, *, as_json: bool) -> None:
    """Compare every row of history with its seal, and the seals with the heads that were kept elsewhere.

    Finds rows that were changed, removed, inserted or put into another order, and an end that was cut off. Ends with 1
    when something is found. --heads is by default the file of HOLDSHORT_AUDIT_HEADS.
    """
    settings = prepare()
    heads = file or _heads_of(settings)
    if heads is not None and not heads.is_file():
        raise WrongUsage(f"{heads} is no file; --heads names what HOLDSHORT_AUDIT_HEADS wrote")
    found = asyncio.run(verify_history(url_of(settings), heads))
    if as_json:
        print_json(_document(found))
    else:
        _print(found)
    if found.findings:
        raise Fault("history is not what was sealed")


@audit.command()
@click.option("--from", "first", type=_NUMBER, metavar="SEQ", help="The least number of a row.")
@click.option("--to", "last", type=_NUMBER, metavar="SEQ", help="The greatest.")
def export(first: int | None, last: int | None) -> None:
    """Write history as lines of JSON in the order of the stream, each seal after the rows that it covers.

    What a seal digests, and in which form, says the module `controlplane.domain.seals`: a copy can be verified without
    this program.
    """
    try:
        asyncio.run(export_lines(url_of(prepare()), Range(first, last), sys.stdout.buffer))
    except BrokenPipeError:
        # Whoever reads has read enough; nothing more is written, not even at the process's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None


@audit.command()
@click.option("--before", type=_DATE, required=True, help="Only what was sealed before; UTC where no zone is named.")
@click.option("--exported", "copy", type=click.Path(path_type=Path), help="What `audit export` wrote of these rows.")
@click.option("--without-export", is_flag=True, help="Prune although there is no copy; the rows are gone for ever.")
@click.option("--dry-run", is_flag=True, help="Change nothing; say what would be pruned.")
@json_option
def prune(before: datetime, copy: Path | None, *, without_export: bool, dry_run: bool, as_json: bool) -> None:
    """Remove the oldest rows of history by whole seals, as the owner of the tables, and record it in history.

    It goes from the oldest seal to the first one that must stay: that is not older than --before, or has a row of
    something that goes on (a run that has not ended, a delivery that is pending). The seals themselves stay, so that
    `audit verify` and the heads still prove the rest, and a copy of what was pruned.

    Export first, and give the file as --exported: each row of it is compared with its seal before anything is removed.
    Servers may go on; nothing waits for this. It may be ended at any moment and run again. Uses
    HOLDSHORT_MIGRATION_DATABASE_URL, else HOLDSHORT_DATABASE_URL.
    """
    if not dry_run and (copy is not None) == without_export:
        raise WrongUsage("give the file that `holdshort audit export` wrote as --exported, or else --without-export")
    if copy is not None and not copy.is_file():
        raise WrongUsage(f"{copy} is no file; --exported names what `holdshort audit export` wrote")
    moment = before if before.tzinfo else before.replace(tzinfo=UTC)
    wanted = Wanted(before=moment, copy=copy, dry_run=dry_run)
    done = asyncio.run(prune_history(owner_url_of(prepare()), wanted))
    if as_json:
        print_json(done)
    else:
        _print_pruned(done)


def _heads_of(settings: Settings) -> Path | None:
    target = settings.audit_heads
    return Path(target) if target is not None and is_file(target) else None


def _document(found: Verified) -> dict[str, object]:
    return {
        "ok": not found.findings,
        **structs.asdict(found),
        "not_covered": _not_covered(found),
    }


def _not_covered(found: Verified) -> list[str]:
    without = [] if found.heads is not None else [WITHOUT_HEADS]
    return [*NOT_COVERED, *without, *([] if found.pruned is None else [PRUNED])]


def _print(found: Verified) -> None:
    late = f", the oldest for {found.unsealed_seconds:.0f} s" if found.unsealed_seconds > LATE_SECONDS else ""
    skipped = f", {found.heads_unreadable} lines unreadable" if found.heads_unreadable else ""
    fields = {
        "sealed": f"{found.rows} rows in {found.seals} seals"
        + (f", the last of {found.last_sealed_at}" if found.last_sealed_at else ""),
        "pruned": None if found.pruned is None else _pruned(found.pruned),
        "unsealed": f"{found.unsealed} rows{late}",
        "heads": None if found.heads is None else f"{found.heads} compared{skipped}",
        "guarded by": "a role that may only add to history"
        if found.guarded_by_role
        else "a trigger only: the role of HOLDSHORT_DATABASE_URL owns history, or may change it",
        "found": "nothing" if not found.findings else f"{len(found.findings) + found.more}",
    }
    print_fields(fields)
    for finding in found.findings:
        click.echo(f"  {_line(finding)}")
    if found.more:
        click.echo(f"  and {found.more} more")
    click.echo("not covered")
    for sentence in _not_covered(found):
        click.echo(f"  {sentence}")


def _pruned(pruned: Pruning) -> str:
    if pruned.record is None:
        return f"up to seal {pruned.seal}, and nothing says by whom"
    return f"up to seal {pruned.seal} ({pruned.record.rows} rows), at last by {pruned.record.by} at {pruned.at}"


def _print_pruned(done: Done) -> None:
    stop = done.stopped
    row = "" if stop is None or stop.seq is None else f"row {stop.seq}: "
    fields = {
        "would be pruned" if done.dry_run else "pruned": f"{done.rows} rows in {done.seals} seals",
        "up to seal": done.pruned_to or None,
        "stopped at": "the end of what is sealed" if stop is None else f"seal {stop.seal}: {row}{stop.why}",
    }
    print_fields(fields)


def _line(finding: Finding) -> str:
    where = [] if finding.seal is None else [f"seal {finding.seal}"]
    if finding.first_seq is not None:
        last = "" if finding.last_seq in (None, finding.first_seq) else f" to {finding.last_seq}"
        where.append(f"rows {finding.first_seq}{last}" if last else f"row {finding.first_seq}")
    return f"{', '.join(where)}: {finding.what}" if where else finding.what
