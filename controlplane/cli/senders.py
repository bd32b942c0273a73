"""`holdshort senders`: make, list, rotate and revoke webhook senders, on the database itself."""

import os
import time
from collections.abc import Iterator
from typing import Any, TextIO

import click
from msgspec import structs

from controlplane.cli.api import json_option
from controlplane.cli.database import OPERATOR, run
from controlplane.cli.environment import prepare
from controlplane.cli.output import print_fields, print_json, print_table
from controlplane.cli.sealing import vault_of
from controlplane.domain.senders import ENTROPY_BYTES, check_secret, mint
from controlplane.domain.vault import NONCE_BYTES
from controlplane.runtime.sender_book import FRESH_SECONDS, STALE_SECONDS
from controlplane.services import senders as service
from controlplane.services.senders import Fresh, Listed, ListedSecret, Rotated
from controlplane.settings import Settings
from controlplane.storage.engine import Connection

COLUMNS = ("sender", "secret_id", "state", "created_at", "valid_until", "master_key")
DAY_SECONDS = 86_400
TEN_YEARS_SECONDS = 315_360_000
MOST_READ = 4096
ID_BYTES = 10
SETTING = "in the settings"

secret_option = click.option(
    "--secret-from",
    "given",
    type=click.File(encoding="utf-8"),
    help="Take the secret from this file (- reads standard input, or asks) instead of making one.",
)


@click.group()
def senders() -> None:
    """Make, list, rotate and revoke webhook senders. Uses HOLDSHORT_DATABASE_URL and HOLDSHORT_MASTER_KEYS.

    No running server is needed; a change is shown once every server that runs knows of it, which takes seconds. A
    sender's name stands in the history of what it decides. Secrets of the same name in HOLDSHORT_WEBHOOK_SECRETS hold
    beside those of the database.
    """


@senders.command()
@click.argument("name")
@secret_option
@json_option
def create(name: str, given: TextIO | None, *, as_json: bool) -> None:
    """Make a sender called NAME and print its secret: this once.

    A sender that was revoked comes back with the new secret only.
    """
    settings = prepare()
    vault, fresh = vault_of(settings), _fresh(given)

    async def make(conn: Connection) -> str:
        return await service.create(conn, vault, name, fresh, OPERATOR)

    made = {"sender": name, "secret_id": run(settings, make)}
    time.sleep(FRESH_SECONDS)
    _say_of_settings(settings, name, "hold beside it")
    _print(_shown_once(fresh, given) | made, as_json=as_json)


@senders.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List every sender with its secrets, the ended ones too; never what these are."""
    settings = prepare()
    found = run(settings, service.listed)
    if as_json:
        print_json({"senders": found, "settings": _of_settings(settings)})
        return
    revoked = {sender.name for sender in found if sender.revoked_at is not None}
    given = ((name, _state(name in revoked)) for name in _of_settings(settings))
    rows = [{"sender": name, "secret_id": SETTING, "state": state} for name, state in given]
    print_table([*_rows(found), *rows], COLUMNS, empty="no senders; make one with `holdshort senders create`")


@senders.command()
@click.argument("name")
@secret_option
@click.option(
    "--overlap",
    type=click.FloatRange(0, TEN_YEARS_SECONDS),
    default=DAY_SECONDS,
    show_default=True,
    help="Seconds the old hold.",
)
@json_option
def rotate(name: str, given: TextIO | None, overlap: float, *, as_json: bool) -> None:
    """Print a new secret for NAME; the old ones hold on for a while, until the sender signs with the new one."""
    settings = prepare()
    vault, fresh = vault_of(settings), _fresh(given)

    async def change(conn: Connection) -> Rotated:
        return await service.rotate(conn, vault, name, fresh, others_for=overlap, actor=OPERATOR)

    made = {"sender": name} | structs.asdict(run(settings, change)) | {"others_for": overlap}
    # Whoever is given the new secret may sign with it at once.
    time.sleep(FRESH_SECONDS)
    _say_of_settings(settings, name, "hold on until they are taken out there")
    _print(_shown_once(fresh, given) | made, as_json=as_json)


@senders.command()
@click.argument("name")
@click.option("--secret", "secret_id", help="End this one of its secrets only, by its id (whs_...).")
@json_option
def revoke(name: str, secret_id: str | None, *, as_json: bool) -> None:
    """End NAME with all its secrets, on every server; those of the same name in the settings do not hold either."""
    settings = prepare()

    async def end(conn: Connection) -> tuple[str, ...]:
        if secret_id is None:
            return await service.revoke(conn, name, OPERATOR)
        await service.revoke_secret(conn, name, secret_id, OPERATOR)
        return (secret_id,)

    ended = run(settings, end)
    time.sleep(STALE_SECONDS)
    _print({"sender": name, "ended": list(ended)}, as_json=as_json)


def _fresh(given: TextIO | None) -> Fresh:
    secret = mint(os.urandom(ENTROPY_BYTES)) if given is None else check_secret(_read(given))
    return Fresh(secret, os.urandom(ID_BYTES), os.urandom(NONCE_BYTES))


def _shown_once(fresh: Fresh, given: TextIO | None) -> dict[str, Any]:
    return {"secret": fresh.secret} if given is None else {}


def _read(given: TextIO) -> str:
    """A secret from a file or a pipe; a terminal does not show what is typed."""
    if given.isatty():
        return str(click.prompt("Secret", hide_input=True, err=True))
    return given.read(MOST_READ)


def _of_settings(settings: Settings) -> list[str]:
    """The senders that the settings name, as far as this command is given the servers' own."""
    return list(dict.fromkeys(each.sender or "(unnamed)" for each in settings.webhook_secrets))


def _say_of_settings(settings: Settings, name: str, effect: str) -> None:
    if name in _of_settings(settings):
        click.echo(f"Secrets of {name} in HOLDSHORT_WEBHOOK_SECRETS {effect}.", err=True)


def _rows(found: list[Listed]) -> Iterator[dict[str, Any]]:
    for sender in found:
        for each in sender.secrets:
            state = _state(sender.revoked_at is not None, each)
            yield {"sender": sender.name, "state": state} | structs.asdict(each)


def _state(revoked: bool, secret: ListedSecret | None = None) -> str:
    if revoked:
        return "revoked"
    if secret is None or secret.valid_until is None:
        return "holds"
    return "ends" if secret.holds else "ended"


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields(document)
