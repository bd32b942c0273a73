"""`holdshort keys`: make, list, rotate and revoke API keys, on the database itself."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar

import click
from msgspec import structs

from controlplane.cli.api import json_option
from controlplane.cli.environment import prepare
from controlplane.cli.faults import WrongUsage
from controlplane.cli.output import print_fields, print_json, print_table
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES, Key, Scope
from controlplane.services import access
from controlplane.services.access import Wanted
from controlplane.storage import keys as storage
from controlplane.storage.engine import Connection, make_engine, transaction

Done = TypeVar("Done")
COLUMNS = ("key_id", "name", "scopes", "node_id", "created_at", "expires_at", "last_used_at", "revoked_at")
OPERATOR = Actor(ActorKind.PERSON, "operator", "cli")


@click.group()
def keys() -> None:
    """Make, list, rotate and revoke API keys. Uses HOLDSHORT_DATABASE_URL; no running server is needed."""


@keys.command()
@click.argument("name")
@click.option("--scope", "scopes", type=click.Choice([scope.value for scope in Scope]), multiple=True, required=True)
@click.option("--node", "node_id", help="Bind an agent's key to this node.")
@click.option("--expires-in-days", type=click.FloatRange(min=0, min_open=True), help="Days until it ends.")
@json_option
def create(
    name: str,
    scopes: tuple[str, ...],
    node_id: str | None,
    expires_in_days: float | None,
    *,
    as_json: bool,
) -> None:
    """Make a key called NAME and print it: this once, as only its digest is kept."""
    expires_in = None if expires_in_days is None else timedelta(days=expires_in_days)
    wanted = Wanted(name=name, scopes=scopes, node_id=node_id, expires_in=expires_in)

    async def make(conn: Connection) -> tuple[Key, str]:
        return await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=OPERATOR)

    _print_new(*_run(make), as_json=as_json)


@keys.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List every key, the ended ones too."""
    found = [structs.asdict(key) for key in _run(storage.listed)]
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

    async def change(conn: Connection) -> tuple[Key, str]:
        return await access.rotate(conn, key_id, entropy=os.urandom(ENTROPY_BYTES), others_for=overlap, actor=OPERATOR)

    _print_new(*_run(change), as_json=as_json)


@keys.command()
@click.argument("key_id")
@json_option
def revoke(key_id: str, *, as_json: bool) -> None:
    """End KEY_ID: within seconds on every server, with the streams and waits that are open under it."""

    async def end(conn: Connection) -> Key:
        return await access.revoke(conn, key_id, OPERATOR)

    _print(structs.asdict(_run(end)), as_json=as_json)


def _print_new(key: Key, text: str, *, as_json: bool) -> None:
    _print({"key": text} | structs.asdict(key), as_json=as_json)


def _print(document: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        print_fields(document)


def _run(work: Callable[[Connection], Awaitable[Done]]) -> Done:
    """Do something in one transaction on the database."""
    url = prepare().database_url
    if url is None:
        raise WrongUsage("set HOLDSHORT_DATABASE_URL to the database that the servers use")

    async def run() -> Done:
        engine = make_engine(url, pool_size=1)
        try:
            async with transaction(engine) as conn:
                return await work(conn)
        finally:
            await engine.dispose()

    return asyncio.run(run())
