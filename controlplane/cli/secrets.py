"""`holdshort secrets`: what a server needs to keep others out, made here and kept nowhere."""

import base64
import os

import click

from controlplane.cli.api import json_option
from controlplane.cli.output import print_json
from controlplane.domain import keys
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.domain.vault import KEY_BYTES

WEBHOOK_SECRET_BYTES = 24


@click.command()
@json_option
def secrets(*, as_json: bool) -> None:
    """Print a master key, a webhook secret and a first API key, new each time, as lines for the environment.

    They are what `holdshort serve` does not start without. Nothing is kept, and no database is needed:

    \b
    (umask 077; holdshort secrets > .env)
    set -a; . ./.env; set +a
    """  # noqa: D301 - click wants a real backspace to keep these lines as they are
    made = {
        "HOLDSHORT_MASTER_KEYS": new_master_key(),
        "HOLDSHORT_WEBHOOK_SECRETS": new_webhook_secret(),
        "HOLDSHORT_BOOTSTRAP_ADMIN_KEY": keys.mint(os.urandom(ENTROPY_BYTES))[1],
    }
    if as_json:
        print_json(made)
    else:
        click.echo("\n".join(f"{name}={value}" for name, value in made.items()))


def new_master_key() -> str:
    """A key for HOLDSHORT_MASTER_KEYS."""
    return base64.b64encode(os.urandom(KEY_BYTES)).decode()


def new_webhook_secret() -> str:
    """A secret for HOLDSHORT_WEBHOOK_SECRETS."""
    return os.urandom(WEBHOOK_SECRET_BYTES).hex()
