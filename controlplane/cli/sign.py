"""`holdshort sign`: the header that makes a body a signed webhook, for trying things out with curl."""

import os
from typing import BinaryIO

import click

from controlplane import settings
from controlplane.cli.environment import SECRET_FILE
from controlplane.cli.faults import WrongUsage
from controlplane.cli.kept import read_secret
from controlplane.domain import signatures


@click.command()
@click.argument("body", type=click.File("rb"))
@click.option(
    "--timestamp", type=click.IntRange(0, 999_999_999_999), default=None, help="Sign this time too: date +%s."
)
def sign(body: BinaryIO, timestamp: int | None) -> None:
    """Print the X-Webhook-Signature header for the bytes of BODY (- reads standard input).

    The secret is the first of HOLDSHORT_WEBHOOK_SECRETS, else the one that `holdshort dev` keeps in HOLDSHORT_HOME.

    \b
    curl -H "$(holdshort sign answer.json)" --data-binary @answer.json \\
         http://127.0.0.1:8080/api/v1/webhooks/approval-response
    """  # noqa: D301 - click wants a real backspace to keep these lines as they are
    secret, content = _secret(), body.read()
    if timestamp is None:
        value = signatures.sign_hex(secret, content)
    else:
        value = signatures.sign_timestamped(secret, content, timestamp=timestamp)
    click.echo(f"X-Webhook-Signature: {value}")


def _secret() -> str:
    configured = settings.load(os.environ, root=os.geteuid() == 0)
    if configured.webhook_secrets:
        return configured.webhook_secrets[0].secret
    kept = read_secret(configured.home / SECRET_FILE)
    if kept is None:
        raise WrongUsage("no secret is known; set HOLDSHORT_WEBHOOK_SECRETS, or start `holdshort dev` once")
    return kept
