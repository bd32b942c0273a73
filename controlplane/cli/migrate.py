"""`holdshort migrate`: the schema of a database, brought to what this version knows."""

import asyncio

import click

from controlplane.cli.environment import prepare
from controlplane.cli.faults import WrongUsage
from controlplane.storage import migrations


@click.command()
def migrate() -> None:
    """Bring the database to the schema that this version knows.

    Uses HOLDSHORT_MIGRATION_DATABASE_URL (a role that may create tables), else HOLDSHORT_DATABASE_URL. Several at once
    do no harm: one works, the others find it done.
    """
    settings = prepare()
    url = settings.migration_database_url or settings.database_url
    if url is None:
        raise WrongUsage("set HOLDSHORT_DATABASE_URL (or HOLDSHORT_MIGRATION_DATABASE_URL) to the database")
    migrated = asyncio.run(migrations.migrate(url))
    if migrated.before == migrated.after:
        click.echo(f"already at {migrated.after}")
    else:
        click.echo(f"{migrated.before or 'empty'} -> {migrated.after}")
