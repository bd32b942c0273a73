"""`holdshort migrate`: the schema of a database, brought to what this version knows."""

import asyncio

import click

from controlplane.cli.environment import prepare
from controlplane.cli.faults import WrongUsage
from controlplane.storage import grants, migrations


@click.command()
@click.option("--grants", "role", metavar="ROLE", help="Only print what makes ROLE the role of the servers, as SQL.")
def migrate(role: str | None) -> None:
    """Bring the database to the schema that this version knows.

    Uses HOLDSHORT_MIGRATION_DATABASE_URL (a role that may create tables), else HOLDSHORT_DATABASE_URL. Several at once
    do no harm: one works, the others find it done.

    Servers under a role of their own, which may not change history, need what --grants prints: have the owner run it
    after every migration (holdshort migrate --grants holdshort_app | psql "$HOLDSHORT_MIGRATION_DATABASE_URL").
    """
    if role is not None:
        click.echo("".join(f"{statement};\n" for statement in grants.statements(role)), nl=False)
        return
    settings = prepare()
    url = settings.migration_database_url or settings.database_url
    if url is None:
        raise WrongUsage("set HOLDSHORT_DATABASE_URL (or HOLDSHORT_MIGRATION_DATABASE_URL) to the database")
    migrated = asyncio.run(migrations.migrate(url))
    if migrated.before == migrated.after:
        click.echo(f"already at {migrated.after}")
    else:
        click.echo(f"{migrated.before or 'empty'} -> {migrated.after}")
