"""`holdshort doctor`: whether a set-up is as it should be, and what to do where it is not."""

import asyncio
from datetime import datetime

import click
from msgspec import structs

from controlplane.cli.api import json_option
from controlplane.cli.database import url_of
from controlplane.cli.environment import prepare
from controlplane.cli.faults import Fault
from controlplane.cli.output import literal, print_json
from controlplane.domain.diagnosis import Check, Level, Told, examine
from controlplane.domain.errors import DatabaseUnavailable
from controlplane.domain.webhook_secrets import weak
from controlplane.runtime import Runtime
from controlplane.services import diagnosis
from controlplane.settings import Settings
from controlplane.storage import migrations
from controlplane.storage.migrations import SchemaUnknown

_COLOURS = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "red"}


@click.command()
@json_option
def doctor(*, as_json: bool) -> None:
    """Look at the settings and the database as a server would, and say what is not as it should be.

    Changes nothing. Ends with 1 where something must be put right before a server may be trusted.
    """
    settings = prepare()
    checks = asyncio.run(_checks(settings))
    if as_json:
        print_json({"ok": not _failed(checks), "checks": [structs.asdict(check) for check in checks]})
    else:
        _print(checks)
    if _failed(checks):
        raise Fault(f"{len(_failed(checks))} of {len(checks)} checks failed")


async def _checks(settings: Settings) -> list[Check]:
    url_of(settings)
    runtime = Runtime(settings)
    try:
        await migrations.check(runtime.engine)
        async with runtime.transaction() as conn:
            found = await diagnosis.look(conn)
        return examine(_told(settings, runtime.now()), found)
    except DatabaseUnavailable:
        remedy = "start PostgreSQL, or correct HOLDSHORT_DATABASE_URL"
        return [Check("database", Level.FAIL, "cannot be reached", remedy)]
    except SchemaUnknown as fault:
        return [Check("schema", Level.FAIL, fault.message, "holdshort migrate")]
    finally:
        await runtime.close()


def _told(settings: Settings, at: datetime) -> Told:
    return Told(
        at=at,
        webhook_secrets=len(settings.webhook_secrets),
        weak_senders=tuple(weak(settings.webhook_secrets)),
        master_keys=tuple(key.name for key in settings.master_keys),
        bootstrap_key=settings.bootstrap_admin_key is not None,
        audit_heads=settings.audit_heads is not None,
        public_url=settings.public_url,
        dangerous_callback_allow=settings.dangerous_callback_allow,
    )


def _print(checks: list[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        word = click.style(f"{check.level:<4}", fg=_COLOURS[check.level])
        click.echo(f"{word}  {check.name:<{width}}  {literal(check.found)}")
        if check.remedy is not None:
            click.echo(f"{'':<{width + 8}}{literal(check.remedy)}")


def _failed(checks: list[Check]) -> list[Check]:
    return [check for check in checks if check.level is Level.FAIL]
