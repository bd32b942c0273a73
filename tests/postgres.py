"""PostgreSQL for the tests: one server a run, one migrated template, a clone of it for each test that asks."""

import asyncio
import os
import secrets
import socket
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

Value = TypeVar("Value")

GIVEN = "HOLDSHORT_TEST_DATABASE_URL"
IMAGE = "postgres:18-alpine"


class Server(NamedTuple):
    """A PostgreSQL that the tests may make databases in, and how it was had."""

    url: str
    source: str

    def url_of(self, database: str) -> str:
        """The connection URL of one of its databases."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(scheme="postgresql", path=f"/{database}"))


class Database(NamedTuple):
    """One test's own database, migrated and empty."""

    url: str
    name: str
    server: Server

    async def connect(self) -> "asyncpg.Connection[asyncpg.Record]":
        """A connection that the test closes; for looking at rows and for holding locks."""
        return await asyncpg.connect(self.url)


def choose(environ: dict[str, str]) -> str:
    """Which server this run uses: `given`, `docker` or `embedded`."""
    if environ.get(GIVEN):
        return "given"
    return "docker" if _docker_answers(environ) else "embedded"


@contextmanager
def serve(source: str, environ: dict[str, str]) -> Iterator[Server]:
    """Have the chosen server for the length of a block."""
    if source == "given":
        yield Server(environ[GIVEN], source)
    elif source == "docker":
        from testcontainers.postgres import PostgresContainer

        with PostgresContainer(IMAGE, driver=None) as container:
            yield Server(container.get_connection_url(), source)
    else:
        from controlplane.cli.postgres import run_ephemeral

        with run_ephemeral(entropy=os.urandom) as embedded:
            yield Server(embedded.url_of("postgres"), source)


@contextmanager
def template(server: Server) -> Iterator[str]:
    """A migrated database to clone; its name is random, so two runs may share a server."""
    from controlplane.storage.migrations import migrate

    name = f"holdshort_template_{secrets.token_hex(6)}"
    run(_execute(server, f"CREATE DATABASE {name}"))
    try:
        run(migrate(server.url_of(name)))
        yield name
    finally:
        run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


@contextmanager
def clone(server: Server, source: str) -> Iterator[Database]:
    """A copy of the template, dropped at the end whoever is still connected."""
    name = f"holdshort_test_{secrets.token_hex(6)}"
    run(_execute(server, f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY WAL_LOG"))
    try:
        yield Database(server.url_of(name), name, server)
    finally:
        run(_execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


async def wait_until_blocked(watcher: "asyncpg.Connection[asyncpg.Record]", pid: int, *, seconds: float = 10) -> None:
    """Return once the backend `pid` waits for a lock that another one holds; raises TimeoutError if it never does.

    Args:
        watcher: a connection that is not itself waiting.
        pid: `connection.get_server_pid()` of the one that shall wait.
        seconds: how long to look.
    """
    async with asyncio.timeout(seconds):
        while not await watcher.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid):
            await asyncio.sleep(0.005)


async def wait_until_any_blocked(
    watcher: "asyncpg.Connection[asyncpg.Record]", count: int = 1, *, seconds: float = 10
) -> None:
    """Return once `count` backends of the watcher's database wait for locks; for backends whose id is unknown."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with asyncio.timeout(seconds):
        while await watcher.fetchval(query) < count:
            await asyncio.sleep(0.005)


def run(work: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine to its end in a loop and thread of its own, so that a test's loop is never touched."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _execute(server: Server, statement: str) -> None:
    connection = await asyncpg.connect(server.url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def _docker_answers(environ: dict[str, str]) -> bool:
    """Whether a Docker engine listens where its clients look; the client library leaks a socket when none does."""
    where = urlsplit(environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    family, address = (
        (socket.AF_UNIX, where.path)
        if where.scheme == "unix"
        else (socket.AF_INET, (where.hostname or "127.0.0.1", where.port or 2375))
    )
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(3)
        return probe.connect_ex(address) == 0
