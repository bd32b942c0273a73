"""`holdshort nodes`: which agents are registered, what they serve, whose they are; and giving one to another key."""

from collections.abc import Iterator
from typing import Any

import click

from controlplane.cli.api import Api, Document, json_option, segment, url_option
from controlplane.cli.database import OPERATOR, run
from controlplane.cli.environment import prepare
from controlplane.cli.output import print_fields, print_json, print_table
from controlplane.services import access
from controlplane.storage.engine import Connection

COLUMNS = ("node_id", "version", "status", "base_url", "seen_at", "owner", "reasoners")
INSTANCES = ("instance_id", "status", "base_url", "version", "seen_at", "lease_until", "gone_at", "gone_reason")
REASONERS = ("name", "timeout_seconds", "resume", "input_schema")
NOBODY = "no instance is there"


class _Nodes(click.Group):
    """Lists or shows when no command is named, so that `holdshort nodes` and `holdshort nodes NODE_ID` do."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if args and args[0] in known else ["list", *args])


@click.group(cls=_Nodes)
def nodes() -> None:
    """List the agents that are registered (also without a command), show one, or give one to another key."""


@nodes.command("list")
@click.argument("node_id", required=False)
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@url_option
@json_option
def list_(node_id: str | None, limit: int, url: str, *, as_json: bool) -> None:
    """List the agents that are registered, a line for each process; with NODE_ID show one of them."""
    if node_id is not None:
        _show(Api(url).get(f"/nodes/{segment(node_id, 'NODE_ID')}"), as_json=as_json)
        return
    page = Api(url).page("/nodes", "nodes", limit=limit)
    if as_json:
        print_json(page)
    else:
        print_table(_lines(page["nodes"]), COLUMNS, empty="no agent is registered")


@nodes.command()
@click.argument("node_id")
@click.option("--to", "key_id", required=True, help="The key that it belongs to from then on, by its id.")
@json_option
def move(node_id: str, key_id: str, *, as_json: bool) -> None:
    """Give NODE_ID to another key, on the database itself (HOLDSHORT_DATABASE_URL): the key before loses it."""

    async def change(conn: Connection) -> None:
        await access.move_node(conn, node_id, key_id, OPERATOR)

    run(prepare(), change)
    moved = {"node_id": node_id, "owner": key_id}
    if as_json:
        print_json(moved)
    else:
        print_fields(moved)


def _lines(found: list[Document]) -> Iterator[Document]:
    for node in found:
        reasoners = ", ".join(each["name"] for each in node["reasoners"])
        for instance in node["instances"] or [{"status": NOBODY}]:
            yield {
                **instance,
                "node_id": node["node_id"],
                "version": node["version"],
                "owner": node.get("owner"),
                "reasoners": reasoners,
            }


def _show(node: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(node)
        return
    shown: dict[str, Any] = {name: value for name, value in node.items() if name not in {"reasoners", "instances"}}
    print_fields(shown)
    print_table(node["reasoners"], REASONERS, empty="no reasoners")
    print_table(node["instances"], INSTANCES, empty=NOBODY)
