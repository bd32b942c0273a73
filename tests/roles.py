"""A role of the servers' own: what `holdshort migrate --grants` gives it, and nothing else."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote, urlsplit, urlunsplit

from controlplane.storage import grants
from tests.postgres import Database


@asynccontextmanager
async def runtime_role(database: Database, statements: str | None = None) -> AsyncIterator[Database]:
    """The same database, as a new role that may log in and was given what the statements say.

    Args:
        database: as its owner.
        statements: SQL with `servers` for the role; by default what is printed for it.
    """
    # A name that has to be quoted, as names may.
    role, password = f'Servers of "{secrets.token_hex(4)}"', secrets.token_hex(8)
    quoted = '"' + role.replace('"', '""') + '"'
    sql = ";".join(grants.statements(role)) if statements is None else statements.replace('"servers"', quoted)
    owner = await database.connect()
    await owner.execute(f"CREATE ROLE {quoted} LOGIN PASSWORD '{password}'")
    try:
        await owner.execute(sql)
        yield database._replace(url=_as(database.url, role, password))
    finally:
        await owner.execute(f"DROP OWNED BY {quoted}; DROP ROLE {quoted}")
        await owner.close()


def _as(url: str, role: str, password: str) -> str:
    parts = urlsplit(url)
    server = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{quote(role, safe='')}:{password}@{server}"))
