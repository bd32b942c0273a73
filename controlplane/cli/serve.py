"""`holdshort serve`: the API and the workers against a PostgreSQL that is there."""

import asyncio

import click

from controlplane import telemetry
from controlplane.cli import needs, serving
from controlplane.cli.environment import ended_by_signals, ignore_signals, prepare
from controlplane.settings import Settings
from controlplane.storage.append_only import Guard

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
    database, on one machine or many. Nobody gets in without an API key, so it starts only where there is one, or
    HOLDSHORT_BOOTSTRAP_ADMIN_KEY, and with a webhook secret and HOLDSHORT_MASTER_KEYS: see `holdshort secrets`.
    """
    settings = prepare()
    with ended_by_signals():
        _say_what_guards_history(asyncio.run(needs.check(settings, "`holdshort serve`")))
        server = serving.listen(host, port)
        url = serving.url_of(server)
        _log.info("listening", url=url, inbox=f"{settings.public_url or url}/inbox", workers=workers)
        if workers == 1:
            run_app(settings, server)
        else:
            serving.supervise(server, workers)


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
