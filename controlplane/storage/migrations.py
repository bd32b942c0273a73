"""Bring a database to the schema that this server knows, once, however many servers start; refuse any other."""

from functools import partial
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import NullPool

from controlplane.domain.errors import HoldshortError
from controlplane.storage.engine import DRIVER, connect, unavailable

_PACKAGE = Path(__file__).resolve().parents[1]
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('holdshort.migrate', 0))")


class SchemaUnknown(HoldshortError):
    """The database has another schema than this server knows; run `holdshort migrate` with the newest version."""

    code = "schema_unknown"


class Migrated(Struct, frozen=True):
    """The revision before and after; the same when there was nothing to do."""

    before: str | None
    after: str | None


def location() -> Path:
    """Where the migrations are: inside the installed package, or at the top of a checkout."""
    packaged = _PACKAGE / "_migrations"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "migrations"


def newest() -> str | None:
    """The revision that this server knows."""
    return ScriptDirectory(str(location())).get_current_head()


async def migrate(url: str) -> Migrated:
    """Bring a database up to date under an advisory lock, in one transaction.

    Args:
        url: the database, as a role that may create tables.

    Raises:
        SchemaUnknown: the database is at a revision that this server does not know.
        DatabaseUnavailable: the database is away.
    """
    engine = create_async_engine(
        DRIVER, async_creator=partial(connect, url, timeout=10), poolclass=NullPool, hide_parameters=True
    )
    try:
        with unavailable():
            async with engine.begin() as conn:
                await conn.execute(_LOCK)
                return await conn.run_sync(_upgrade)
    finally:
        await engine.dispose()


async def check(engine: AsyncEngine) -> None:
    """Refuse a database whose schema is not the one this server knows.

    Raises:
        SchemaUnknown: it is older, newer or not there.
        DatabaseUnavailable: the database is away.
    """
    with unavailable():
        async with engine.connect() as conn:
            found = await conn.run_sync(_revision)
    if found != newest():
        raise SchemaUnknown(
            f"The database is at revision {found or 'none'}, this server knows {newest()}; run `holdshort migrate` "
            "with the newest version, then start the server again."
        )


def _revision(conn: sa.Connection) -> str | None:
    return MigrationContext.configure(conn).get_current_revision()


def _upgrade(conn: sa.Connection) -> Migrated:
    config = Config()
    config.set_main_option("script_location", str(location()).replace("%", "%%"))
    config.attributes["connection"] = conn
    before = _revision(conn)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if before is not None and before not in known:
        raise SchemaUnknown
    command.upgrade(config, "head")
    return Migrated(before, _revision(conn))
