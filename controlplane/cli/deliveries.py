"""`holdshort deliveries`: callbacks to agents, what became of them, and sending a dead one again."""

import click

from controlplane.cli.api import Api, json_option, url_option
from controlplane.cli.output import print_fields, print_json, print_table

COLUMNS = ("delivery_id", "status", "attempts", "due_at", "last_error", "approval_id", "url")
STATUSES = ("pending", "delivered", "obsolete", "dead")


@click.group()
def deliveries() -> None:
    """List callbacks of a running control plane, and send dead ones again."""


@deliveries.command("list")
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only these.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@url_option
@json_option
def list_deliveries(status: str | None, limit: int, url: str, *, as_json: bool) -> None:
    """List deliveries, newest first."""
    page = Api(url).page("/deliveries", "deliveries", status=status, limit=limit)
    if as_json:
        print_json(page)
    else:
        print_table(page["deliveries"], COLUMNS, empty="no deliveries")


@deliveries.command()
@click.argument("delivery_id")
@url_option
@json_option
def redrive(delivery_id: str, url: str, *, as_json: bool) -> None:
    """Send one pending or dead delivery again, now."""
    if not delivery_id.replace("_", "").isalnum():
        raise click.BadParameter("a delivery's id looks like dlv_...", param_hint="DELIVERY_ID")
    reply = Api(url).post(f"/deliveries/{delivery_id}/redrive", {})
    if as_json:
        print_json(reply)
    else:
        print_fields(reply)
