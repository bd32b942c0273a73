import os

import asyncpg
import pytest

from controlplane.cli.postgres import run_ephemeral


async def test_a_connection_without_the_password_is_refused():
    with run_ephemeral(entropy=os.urandom) as embedded:
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(embedded.url.replace(embedded.password, "guessed"))
        connection = await asyncpg.connect(embedded.url)
        try:
            assert await connection.fetchval("SHOW listen_addresses") == ""
            for durable in ("fsync", "synchronous_commit", "full_page_writes"):
                assert await connection.fetchval(f"SHOW {durable}") == "on"
        finally:
            await connection.close()
