"""`holdshort keys`: make, list, rotate and revoke API keys, on the database itself."""

import os
from datetime import timedelta
from typing import Any

import click
from msgspec import structs

from controlplane.cli.api import json_option
from controlplane.cli.database import OPERATOR, run
from controlplane.cli.environment import prepare
from controlplane.cli.output import print_fields, print_json, print_table
from controlplane.domain.keys import ENTROPY_BYTES, Key, Scope
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.settings import Settings
from controlplane.storage import keys as storage
from controlplane.storage.engine import Connection

COLUMNS = ("key_id", "name", "scopes", "node_id", "allow", "created_at", "expires_at", "last_used_at", "revoked_at")


@click.group()
def keys() -> None:
    """Make, list, rotate and revoke API keys. Uses HOLDSHORT_DATABASE_URL; no running server is needed."""


@keys.command()
@click.argument("name")
@click.option("--scope", "scopes", type=click.Choice([scope.value for scope in Scope]), multiple=True, required=True)
@click.option("--node", "node_id", help="Bind an agent's key to this node.")
@click.option(
    "--allow",
    multiple=True,
    help="What that node may have called beside what the server calls anyway: host[:port] or network[:port], often.",
)
@click.option("--expires-in-days", type=click.FloatRange(min=0, min_open=True), help="Days until it ends.")
@json_option
def create(
    name: str,
    scopes: tuple[str, ...],
    node_id: str | None,
    allow: tuple[str, ...],
    expires_in_days: float | None,
    *,
    as_json: bool,
) -> None:
    """Make a key called NAME and print it: this once, as only its digest is kept."""
    expires_in = None if expires_in_days is None else timedelta(days=expires_in_days)
    settings = prepare()
    wanted = Wanted(
        name=name,
        scopes=scopes,
        node_id=node_id,
        expires_in=expires_in,
        allow=allow,
        dangerous=settings.dangerous_callback_allow,
    )

    async def make(conn: Connection) -> tuple[Key, str]:
        return await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=OPERATOR)

    _print_new(*run(settings, make), settings, as_json=as_json)


@keys.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List every key, the ended ones too."""
    found = [structs.asdict(key) for key in run(prepare(), storage.listed)]
    if as_json:
        print_json({"keys": found})
    else:
        print_table(found, COLUMNS, empty="no keys; make one with `holdshort keys create`")


@keys.command()
@click.argument("key_id")
@click.option("--overlap", type=click.FloatRange(min=0), default=3600, show_default=True, help="Seconds the old holds.")
@json_option
def rotate(key_id: str, overlap: float, *, as_json: bool) -> None:
    """Print a new secret for KEY_ID; the old one holds on for a while, and what the key owns stays its own."""
    settings = prepare()

    async def change(conn: Connection) -> tuple[Key, str]:
        return await access.rotate(conn, key_id, entropy=os.urandom(ENTROPY_BYTES), others_for=overlap, actor=OPERATOR)

    _print_new(*run(settings, change), settings, as_json=as_json)


@keys.command()
@click.argument("key_id")
@json_option
def revoke(key_id: str, *, as_json: bool) -> None:
    """End KEY_ID: within seconds on every server, with the streams and waits that are open under it."""

    async def end(conn: Connection) -> Key:
        return await access.revoke(conn, key_id, OPERATOR)

    _print(structs.asdict(run(prepare(), end)), as_json=as_json)


def _print_new(key: Key, text: str, settings: Settings, *, as_json: bool) -> None:
    _print({"key": text} | structs.asdict(key), as_json=as_json)
    if not as_json and Scope.AGENT not in key.scopes:
        click.echo(f"People sign in with it at {settings.public_url or 'http://<the server>'}/inbox.")


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields(document)
