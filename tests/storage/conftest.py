"""What storage tests share."""

import subprocess
from collections.abc import Callable

import pytest

from controlplane.cli.postgres.binaries import Binaries


@pytest.fixture
def pg_dump() -> Callable[[str], str]:
    """Dump a database's schema with the embedded PostgreSQL's own pg_dump, without the random \\restrict lines."""
    program = Binaries.locate().program("pg_dump")

    def dump(url: str) -> str:
        done = subprocess.run(
            [program, "--schema-only", "--no-owner", "--exclude-table=alembic_version", "--dbname", url],
            check=True,
            capture_output=True,
            text=True,
        )
        return "\n".join(line for line in done.stdout.splitlines() if not line.startswith("\\"))

    return dump
