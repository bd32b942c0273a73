"""`holdshort executions`: the runs of agents, what each has done, what it waits for, and ending one."""

from typing import Any

import click
from msgspec import json

from controlplane.cli.api import Api, Document, json_option, segment, url_option
from controlplane.cli.faults import Fault
from controlplane.cli.output import print_fields, print_json, print_table

COLUMNS = ("execution_id", "node_id", "reasoner", "status", "status_reason", "created_at", "last_error")
STEPS = ("position", "name", "occurrence", "at", "result")
ASKED = ("approval_id", "approval_request_id", "round", "status", "expires_at", "title")
NOTES = ("at", "message", "tags")
STATUSES = ("queued", "running", "waiting", "succeeded", "failed", "cancelled", "timeout")
RESULT_CHARACTERS = 100
MOST = 200


@click.group()
def executions() -> None:
    """List, show and cancel the runs of a running control plane."""


@executions.command("list")
@click.option("--status", type=click.Choice(STATUSES), default=None, help="Only these.")
@click.option("--node", default=None, help="Only those of this agent.")
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True)
@url_option
@json_option
def list_executions(status: str | None, node: str | None, limit: int, url: str, *, as_json: bool) -> None:
    """List runs, newest first."""
    page = Api(url).page("/executions", "executions", status=status, node_id=node, limit=limit)
    if as_json:
        print_json(page)
    else:
        print_table(page["executions"], COLUMNS, empty="no executions")


@executions.command()
@click.argument("execution_id")
@url_option
@json_option
def show(execution_id: str, url: str, *, as_json: bool) -> None:
    """Show one run with its steps, its approvals and its notes."""
    api, path = Api(url), f"/executions/{segment(execution_id, 'EXECUTION_ID')}"
    run = api.get(path)
    steps = api.page(f"{path}/steps", "steps", limit=MOST)
    asked = api.page("/approvals", "approvals", execution_id=run["execution_id"], limit=MOST)
    if as_json:
        print_json({**run, "steps": steps["steps"], "approvals": asked["approvals"]})
        return
    print_fields({name: value for name, value in run.items() if name != "notes"})
    _table("steps", [_short(step) for step in steps["steps"]], STEPS, more=steps["next_after"] is not None)
    _table("approvals", asked["approvals"], ASKED, more=asked["next_cursor"] is not None)
    _table("notes", run["notes"], NOTES, more=False)


@executions.command()
@click.argument("execution_id")
@click.option("--reason", default=None, help="A sentence for whoever looks at it later.")
@url_option
@json_option
def cancel(execution_id: str, reason: str | None, url: str, *, as_json: bool) -> None:
    """Cancel one run: what it asks is withdrawn, and its agent is told."""
    path = f"/executions/{segment(execution_id, 'EXECUTION_ID')}/cancel"
    run = Api(url).post(path, {} if reason is None else {"reason": reason})
    if run.get("status") != "cancelled":
        raise Fault(f"{execution_id} was over before: {run.get('status')}")
    if as_json:
        print_json(run)
    else:
        print_fields({name: run[name] for name in ("execution_id", "status", "status_reason")})


def _table(title: str, rows: list[Document], columns: tuple[str, ...], *, more: bool) -> None:
    click.echo(f"\n{title}")
    print_table(rows, columns, empty=f"no {title}")
    if more:
        click.echo(f"more {title} follow; the API has them all")


def _short(step: Document) -> Document:
    """A step whose result fits on a line."""
    result: Any = json.encode(step["result"]).decode()
    return {**step, "result": result if len(result) <= RESULT_CHARACTERS else f"{result[:RESULT_CHARACTERS]}..."}
