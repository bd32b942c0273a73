"""`holdshort serve`: the API and the workers against a PostgreSQL that is there."""

import asyncio

import click

from controlplane import telemetry
from controlplane.cli import serving
from controlplane.cli.environment import ended_by_signals, ignore_signals, prepare
from controlplane.cli.faults import WrongUsage
from controlplane.settings import Settings
from controlplane.storage import append_only, migrations
from controlplane.storage.append_only import Guard
from controlplane.storage.engine import make_engine, transaction

DEFAULT_PORT = 8080

_log = telemetry.logger("serve")

host_option = click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
port_option = click.option(
    "--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="0 takes a free one."
)


@click.command()
@host_option
@port_option
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes on this port.")
def serve(host: str, port: int, workers: int) -> None:
    """Serve the API and run the workers against HOLDSHORT_DATABASE_URL, until SIGTERM.

    The database must be at this version's schema: run `holdshort migrate` first. Any number of these may run on one
    database, on one machine or many.
    """
    settings = prepare()
    if settings.database_url is None:
        raise WrongUsage("HOLDSHORT_DATABASE_URL is not set; set it, or use `holdshort dev`, which has its own")
    if not settings.webhook_secrets:
        _log.warning("no_webhook_secret", effect="every signed webhook is refused", setting="HOLDSHORT_WEBHOOK_SECRETS")
    with ended_by_signals():
        server = serving.listen(host, port)
        asyncio.run(_check_schema(settings.database_url))
        _log.info("listening", url=serving.url_of(server), workers=workers)
        if workers == 1:
            run_app(settings, server)
        else:
            serving.supervise(server, workers)


async def _check_schema(url: str) -> None:
    engine = make_engine(url, pool_size=1)
    try:
        await migrations.check(engine)
        async with transaction(engine) as conn:
            _say_what_guards_history(await append_only.guard(conn))
    finally:
        await engine.dispose()


def _say_what_guards_history(guard: Guard) -> None:
    if not guard.triggers:
        _log.error("history_is_not_guarded", cause="its triggers are off, or gone", remedy="ask who turned them off")
    elif not guard.grants:
        _log.warning(
            "history_guarded_by_trigger_only",
            cause="the role of HOLDSHORT_DATABASE_URL owns the tables, or may change them",
            remedy="run the servers under a role of their own: holdshort migrate --grants ROLE",
        )


def run_app(settings: Settings, server: serving.Listener) -> None:
    """Serve in this process until SIGTERM or SIGINT."""
    serving.serve_application(settings, server)
    ignore_signals()
