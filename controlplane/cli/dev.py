"""`holdshort dev`: all of Holdshort in the foreground, with a database of its own, for development."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from msgspec import structs

from controlplane.cli import needs, serving
from controlplane.cli.environment import MASTER_KEY_FILE, SECRET_FILE, ended_by_signals, prepare
from controlplane.cli.faults import Fault, WrongUsage
from controlplane.cli.kept import keep_secret, read_secret
from controlplane.cli.postgres import run_embedded, run_ephemeral
from controlplane.cli.secrets import new_master_key, new_webhook_secret
from controlplane.cli.serve import host_option, port_option, run_app
from controlplane.domain.vault import parse_master_keys
from controlplane.domain.webhook_secrets import WebhookSecret
from controlplane.settings import Settings
from controlplane.storage import migrations

SENDER = "dev"
OPEN = "open mode on loopback: programs of this machine need no key; the first `holdshort keys create` ends that"
CLOSED = "with an API key only (`holdshort keys list`)"


@click.command()
@host_option
@port_option
@click.option("--ephemeral", is_flag=True, help="Throw the database away at the end.")
def dev(host: str, port: int, *, ephemeral: bool) -> None:
    """Run everything in the foreground until SIGTERM: database, migration, API and workers.

    The database is HOLDSHORT_DATABASE_URL, or PostgreSQL of its own whose data stay in HOLDSHORT_HOME. Without
    HOLDSHORT_WEBHOOK_SECRETS a secret is made and kept beside the data.

    On a loopback address it stands open as long as there is no API key: programs of this machine need none. On any
    other it starts with a key only, as `holdshort serve` does.
    """
    settings = prepare()
    if ephemeral and settings.database_url is not None:
        raise WrongUsage("--ephemeral is for the embedded database; unset HOLDSHORT_DATABASE_URL first")
    with ended_by_signals():
        server = serving.listen(host, port)
        settings = structs.replace(settings, open_mode=serving.on_loopback(server))
        with _usable_home(settings.home), _database(settings, ephemeral=ephemeral) as ready:
            asyncio.run(migrations.migrate(ready.migration_database_url or _url(ready)))
            stands_open = asyncio.run(_stands_open(ready, host))
            _say_where(serving.url_of(server), ready, given=settings.database_url is not None)
            click.echo(f"access      {OPEN if stands_open else CLOSED}")
            click.echo("Ctrl-C stops it.")
            run_app(ready, server)


async def _stands_open(settings: Settings, host: str) -> bool:
    """Whether nobody needs a key.

    Raises:
        Unready: others reach it, and there is none.
    """
    if not settings.open_mode:
        await needs.check(settings, f"`holdshort dev` on {host}, which others reach,")
    return settings.open_mode and settings.bootstrap_admin_key is None and not await needs.has_key(_url(settings))


@contextmanager
def _database(settings: Settings, *, ephemeral: bool) -> Iterator[Settings]:
    if settings.database_url is not None:
        yield _with_secrets(settings, settings.home)
        return
    running = run_ephemeral(entropy=os.urandom) if ephemeral else run_embedded(settings.home, entropy=os.urandom)
    with running as embedded:
        ours = structs.replace(
            settings, database_url=embedded.url, direct_database_url=None, migration_database_url=None
        )
        yield _with_secrets(ours, embedded.cluster.area.parent)


@contextmanager
def _usable_home(home: Path) -> Iterator[None]:
    try:
        yield
    except OSError as fault:
        at = Path(os.fsdecode(fault.filename or ""))
        if not (at.is_relative_to(home) or home.is_relative_to(at)):
            raise
        raise Fault(f"{home} cannot be used ({fault.strerror}); set HOLDSHORT_HOME to another directory") from fault


def _url(settings: Settings) -> str:
    return settings.database_url or ""


def _with_secrets(settings: Settings, home: Path) -> Settings:
    """The settings with a webhook secret and a master key: those given, else those kept in the home, made once."""
    if not settings.webhook_secrets:
        secret = _kept(home / SECRET_FILE, new_webhook_secret)
        settings = structs.replace(settings, webhook_secrets=(WebhookSecret(SENDER, secret),))
    if not settings.master_keys:
        key = _kept(home / MASTER_KEY_FILE, new_master_key)
        settings = structs.replace(settings, master_keys=parse_master_keys(key))
    return settings


def _kept(file: Path, make: Callable[[], str]) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    return read_secret(file) or keep_secret(file, make())


def _say_where(url: str, settings: Settings, *, given: bool) -> None:
    click.echo(f"Holdshort   {url}")
    click.echo(f"inbox       {settings.public_url or url}/inbox")
    # Whoever gave the URL knows it, and its password is not one of ours to show.
    click.echo(f"database    {'HOLDSHORT_DATABASE_URL' if given else settings.database_url}")
    if [secret.sender for secret in settings.webhook_secrets] == [SENDER]:
        click.echo(f"webhooks    signed with {settings.webhook_secrets[0].secret}  (`holdshort sign` makes the header)")
