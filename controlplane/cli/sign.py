"""`holdshort sign`: the header that makes a body a signed webhook, for trying things out with curl."""

import os
from typing import BinaryIO

import click

from controlplane import settings
from controlplane.cli.database import run
from controlplane.cli.environment import SECRET_FILE
from controlplane.cli.faults import WrongUsage
from controlplane.cli.kept import read_secret
from controlplane.cli.sealing import vault_of
from controlplane.domain import signatures
from controlplane.services import senders
from controlplane.storage.engine import Connection


@click.command()
@click.argument("body", type=click.File("rb"))
@click.option(
    "--timestamp", type=click.IntRange(0, 999_999_999_999), default=None, help="Sign this time too: date +%s."
)
@click.option("--sender", help="Sign as this sender: with its secret in the settings, else in the database.")
def sign(body: BinaryIO, timestamp: int | None, sender: str | None) -> None:
    """Print the X-Webhook-Signature header for the bytes of BODY (- reads standard input).

    The secret is the first of HOLDSHORT_WEBHOOK_SECRETS, else the one that `holdshort dev` keeps in HOLDSHORT_HOME.
    With --sender it is the newest one of that sender.

    \b
    curl -H "$(holdshort sign answer.json)" --data-binary @answer.json \\
         http://127.0.0.1:8080/api/v1/webhooks/approval-response
    """  # noqa: D301 - click wants a real backspace to keep these lines as they are
    secret, content = _secret() if sender is None else _secret_of(sender), body.read()
    if timestamp is None:
        value = signatures.sign_hex(secret, content)
    else:
        value = signatures.sign_timestamped(secret, content, timestamp=timestamp)
    click.echo(f"X-Webhook-Signature: {value}")


def _secret_of(sender: str) -> str:
    configured = _configured()
    given = [each.secret for each in configured.webhook_secrets if each.sender == sender]
    if given:
        return given[0]
    vault = vault_of(configured)

    async def look(conn: Connection) -> str:
        return await senders.newest_secret(conn, vault, sender)

    return run(configured, look)


def _configured() -> settings.Settings:
    return settings.load(os.environ, root=os.geteuid() == 0)


def _secret() -> str:
    configured = _configured()
    if configured.webhook_secrets:
        return configured.webhook_secrets[0].secret
    kept = read_secret(configured.home / SECRET_FILE)
    if kept is None:
        raise WrongUsage("no secret is known; set HOLDSHORT_WEBHOOK_SECRETS, or start `holdshort dev` once")
    return kept
