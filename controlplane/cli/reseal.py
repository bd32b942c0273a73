"""`holdshort reseal`: every secret in the database under the newest master key."""

import asyncio
import os
import sys
from collections import Counter
from typing import Any

import click
from msgspec import Struct, field

from controlplane.cli.api import json_option
from controlplane.cli.database import OPERATOR, Open, opened, url_of
from controlplane.cli.environment import prepare
from controlplane.cli.faults import Fault
from controlplane.cli.output import print_json, print_table
from controlplane.cli.sealing import vault_of
from controlplane.domain.vault import NONCE_BYTES, Vault, sealed_by
from controlplane.services import resealing as service
from controlplane.services.resealing import Turned
from controlplane.storage.resealing import Place

PATIENCE_SECONDS = 30.0
AGAIN_SECONDS = 0.2
IDS_SHOWN = 5
UNSEALED = "(not sealed)"

Counts = dict[Place, Counter[str]]


class Done(Struct):
    """What came of it, by place: secrets sealed anew, those that others held to the end, ids that no key opens."""

    resealed: Counter[Place] = field(default_factory=Counter)
    busy: Counter[Place] = field(default_factory=Counter)
    unreadable: dict[Place, list[str]] = field(default_factory=dict)

    def begin(self, place: Place) -> None:
        """Walk a place from its first row on."""
        self.busy[place], self.unreadable[place] = 0, []

    def add(self, turned: Turned) -> None:
        """Count a page."""
        place = turned.page.place
        self.resealed[place] += turned.resealed
        self.busy[place] += turned.busy
        self.unreadable[place] += turned.unreadable


@click.command()
@click.option("--dry-run", is_flag=True, help="Change nothing; say under which master key how many secrets lie.")
@json_option
def reseal(*, dry_run: bool, as_json: bool) -> None:
    """Seal every secret in the database under the newest of HOLDSHORT_MASTER_KEYS: of senders, and of callbacks.

    To take an older key away while servers run: put a new one behind it and restart every server, put that one first
    and restart them again, run this, and restart them without the older one. This may be run again at any time; it
    ends with 1 while a secret is left under another key.
    """
    settings = prepare()
    vault, url = vault_of(settings), url_of(settings)
    newest = sealed_by(vault.mark) or ""
    if dry_run:
        _say_counts(asyncio.run(_count(url)), newest, as_json=as_json)
        return
    done = asyncio.run(_reseal(url, vault))
    _say_done(done, newest, as_json=as_json)
    left = _left(done)
    if left:
        raise Fault("\n".join(left))


async def _reseal(url: str, vault: Vault) -> Done:
    """Walk every place, and again those where others held rows, until none does or time is up."""
    clock = asyncio.get_running_loop().time
    end, done, places = clock() + PATIENCE_SECONDS, Done(), list(Place)
    async with opened(url) as open_:
        while True:
            for place in places:
                done.begin(place)
                await _walk(open_, vault, place, done)
            places = [place for place in places if done.busy[place]]
            if not places or clock() >= end:
                return done
            await asyncio.sleep(AGAIN_SECONDS)


async def _walk(open_: Open, vault: Vault, place: Place, done: Done) -> None:
    after = ""
    while True:
        async with open_() as conn:
            turned = await service.turn(conn, vault, place, after, nonce=_nonce, actor=OPERATOR)
        if turned is None:
            return
        done.add(turned)
        _progress(place, done.resealed[place])
        after = turned.page.last


async def _count(url: str) -> Counts:
    async with opened(url) as open_:
        return {place: await _count_in(open_, place) for place in Place}


async def _count_in(open_: Open, place: Place) -> Counter[str]:
    found, after = Counter[str](), ""
    while True:
        async with open_() as conn:
            counted = await service.count(conn, place, after)
        if counted is None:
            return found
        found.update({name or UNSEALED: number for name, number in counted.by_master_key})
        after = counted.page.last


def _nonce() -> bytes:
    return os.urandom(NONCE_BYTES)


def _progress(place: Place, resealed: int) -> None:
    """How far it is, where a person looks on."""
    if sys.stderr.isatty():
        click.echo(f"\r{place}: {resealed} sealed anew ", nl=False, err=True)


def _say_counts(found: Counts, newest: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"newest": newest, "secrets": found})
        return
    rows = [
        {"place": place, "master_key": f"{name} (newest)" if name == newest else name, "secrets": number}
        for place, under in found.items()
        for name, number in sorted(under.items())
    ]
    print_table(rows, ("place", "master_key", "secrets"), empty="no secrets are kept")


def _say_done(done: Done, newest: str, *, as_json: bool) -> None:
    places: list[dict[str, Any]] = [
        {"place": each, "resealed": done.resealed[each], "busy": done.busy[each], "unreadable": done.unreadable[each]}
        for each in Place
    ]
    if as_json:
        print_json({"ok": not _left(done), "master_key": newest, "places": places})
        return
    if sys.stderr.isatty():
        click.echo(err=True)
    rows = [row | {"unreadable": len(row["unreadable"])} for row in places]
    print_table(rows, ("place", "resealed", "busy", "unreadable"), empty="")


def _left(done: Done) -> list[str]:
    """What is left under another key, and what to do about it."""
    said = []
    busy = done.busy.total()
    if busy:
        said.append(f"{busy} secrets were in use all the time; run this again")
    for place, ids in done.unreadable.items():
        if ids:
            some = ", ".join(ids[:IDS_SHOWN]) + (", ..." if len(ids) > IDS_SHOWN else "")
            said.append(f"{len(ids)} secrets of {place} open with no key that is given ({some}); add their master key")
    return said
