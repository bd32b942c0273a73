"""`holdshort approvals`: what waits for a decision, and deciding it."""

from typing import Any

import click
from msgspec import DecodeError, json

from controlplane.cli.api import Api, json_option, url_option
from controlplane.cli.output import print_fields, print_json, print_table

COLUMNS = ("approval_id", "approval_request_id", "round", "status", "execution_id", "expires_at", "title")
HISTORY = ("at", "type", "actor_name", "actor_via")
STATUSES = ("pending", "approved", "rejected", "request_changes", "expired", "withdrawn")
DECISIONS = ("approved", "rejected", "request_changes")


@click.group()
def approvals() -> None:
    """List, show and decide approvals of a running control plane."""


@approvals.command("list")
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only these.")
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@url_option
@json_option
def list_approvals(status: str | None, limit: int, url: str, *, as_json: bool) -> None:
    """List approvals, newest first."""
    page = Api(url).page("/approvals", "approvals", status=status, limit=limit)
    if as_json:
        print_json(page)
    else:
        print_table(page["approvals"], COLUMNS, empty="no approvals")


@approvals.command()
@click.argument("approval_id")
@url_option
@json_option
def show(approval_id: str, url: str, *, as_json: bool) -> None:
    """Show one approval with its history."""
    found = Api(url).get(f"/approvals/{_segment(approval_id)}")
    if as_json:
        print_json(found)
        return
    print_fields({name: value for name, value in found.items() if name != "history"})
    print_table(found.get("history", ()), HISTORY, empty="no history")


@approvals.command()
@click.argument("approval_id")
@click.argument("decision", type=click.Choice(DECISIONS))
@click.option("--feedback", default=None, help="A sentence for the agent.")
@click.option("--response", default=None, help="JSON that the agent gets as the answer's data.")
@click.option("--values", default=None, help="JSON: the answer to a question, or what an editable payload becomes.")
@url_option
@json_option
def decide(**given: Any) -> None:
    """Decide one approval."""
    body = {"decision": given["decision"], "feedback": given["feedback"]}
    body |= {name: _json(name, given[name]) for name in ("response", "values")}
    path = f"/approvals/{_segment(given['approval_id'])}/decision"
    reply = Api(given["url"]).post(path, {name: value for name, value in body.items() if value is not None})
    if given["as_json"]:
        print_json(reply)
    else:
        print_fields(reply)


def _segment(text: str) -> str:
    if not text.replace("_", "").isalnum():
        raise click.BadParameter("an approval_id looks like apr_...", param_hint="APPROVAL_ID")
    return text


def _json(name: str, text: str | None) -> Any:
    try:
        return None if text is None else json.decode(text)
    except DecodeError as fault:
        raise click.BadParameter(f"is not JSON: {fault}", param_hint=f"--{name}") from fault
