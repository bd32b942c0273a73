"""What `holdshort dev` writes below its home: each secret in one file that only its owner reads, and no other trace."""

import asyncio
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.cli.processes import Running, run, running
from tests.figures import Figures
from tests.receiver import receiver, reply
from tests.security.canaries import Aviary
from tests.security.places import IN_ANSWERS, search_command_lines, search_files
from tests.security.planting import Caller, Route, routes, staged

# Where each secret that the home keeps lies, and the only one that may lie there.
FILES = {"webhook-secret": "home_secret", "master-key": "home_master_key", "postgres.password": "database_password"}
# The lines of the start that tell a developer what was made for them.
SHOWN = ("database    ", "webhooks    ")
# Bodies are rows; their files, and the log that is written before them, hold these and no secret.
ROWS = IN_ANSWERS
TABLES = ("executions", "approvals", "notes", "steps", "nodes", "history", "deliveries")


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that the account of PostgreSQL may pass through."""
    made = Path(tempfile.mkdtemp(prefix="hs-home-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.mark.timeout(300)
@pytest.mark.proof
async def test_a_home_keeps_its_secrets_to_itself(home: Path, figures: Figures):
    aviary = Aviary()
    environ = {"HOLDSHORT_HOME": str(home), "HOLDSHORT_LOG_LEVEL": "debug"}
    async with receiver() as told:
        told.answers = [reply(500)]
        with running("dev", "--port", "0", **environ) as server:
            base = await asyncio.to_thread(server.wait_until_ready)
            for name, canary in FILES.items():
                aviary.plant(canary, (home / name).read_text().strip())
            url = next(line for line in server.printed() if line.startswith("database")).split()[1]
            held = {
                scope: await asyncio.to_thread(make_key, aviary, url, scope) for scope in ("agent", "review", "admin")
            }
            caller = Caller(aviary, base, held, (home / "webhook-secret").read_text().strip())
            ids = await staged(caller, 0, told.url, f"http://127.0.0.1:{told.port}")
            await walk(caller, ids)
            refused = await with_rows_refused(caller, ids, url)
            found = search_command_lines(aviary, server.process.pid)
            await caller.client.aclose()
            await asyncio.to_thread(server.terminate)
            lines = printed(server)
    shown = [line for line in lines if line.startswith(SHOWN)]
    assert len(shown) == len(SHOWN)
    found += aviary.search("output", "".join(line for line in lines if not line.startswith(SHOWN)))
    allowed: dict[str, Iterable[str]] = {name: [canary] for name, canary in FILES.items()}
    found += search_files(aviary, home, allowed=allowed | {"postgres/data": ROWS})
    figures(
        "canaries in a home",
        planted=aviary.count,
        places_searched=aviary.places,
        bytes_searched=aviary.bytes,
        leaked=len(found),
    )
    assert found == []
    assert refused[500] >= 10
    assert "violates check constraint" in log_of(home)


def log_of(home: Path) -> str:
    """What PostgreSQL wrote."""
    return next(home.rglob("server.log")).read_text()


def make_key(aviary: Aviary, url: str, scope: str) -> str:
    done = run("keys", "create", scope, "--scope", scope, "--json", HOLDSHORT_DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    return aviary.plant("api_key", json.loads(done.stdout)["key"])


async def walk(caller: Caller, ids: Any) -> Counter[int]:
    """Each route once."""
    seen: Counter[int] = Counter()
    for route in [Route("register_node", "POST", "/nodes/register"), *routes()]:
        seen[(await caller.good(route, ids, route.name)).status] += 1
    return seen


async def with_rows_refused(caller: Caller, ids: Any, url: str) -> Counter[int]:
    """Each route once while PostgreSQL refuses every row, and says so in its own log."""
    owner = await asyncpg.connect(url)
    for table in TABLES:
        await owner.execute(f"ALTER TABLE {table} ADD CONSTRAINT refuses CHECK (false) NOT VALID")
    seen = await walk(caller, ids)
    for table in TABLES:
        await owner.execute(f"ALTER TABLE {table} DROP CONSTRAINT refuses")
    await owner.close()
    return seen


def printed(server: Running) -> list[str]:
    server.close()
    return server.printed()
