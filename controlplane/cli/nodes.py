"""`holdshort nodes`: which agents are registered, what they serve, and which of their processes are there."""

from collections.abc import Iterator
from typing import Any

import click

from controlplane.cli.api import Api, Document, json_option, segment, url_option
from controlplane.cli.output import print_fields, print_json, print_table

COLUMNS = ("node_id", "version", "status", "base_url", "seen_at", "reasoners")
INSTANCES = ("instance_id", "status", "base_url", "version", "seen_at", "lease_until", "gone_at", "gone_reason")
REASONERS = ("name", "timeout_seconds", "resume", "input_schema")
NOBODY = "no instance is there"


@click.command()
@click.argument("node_id", required=False)
@click.option("--limit", type=click.IntRange(1, 200), default=50, show_default=True)
@url_option
@json_option
def nodes(node_id: str | None, limit: int, url: str, *, as_json: bool) -> None:
    """List the agents that are registered, a line for each process; with NODE_ID show one of them."""
    if node_id is not None:
        _show(Api(url).get(f"/nodes/{segment(node_id, 'NODE_ID')}"), as_json=as_json)
        return
    page = Api(url).page("/nodes", "nodes", limit=limit)
    if as_json:
        print_json(page)
    else:
        print_table(_lines(page["nodes"]), COLUMNS, empty="no agent is registered")


def _lines(found: list[Document]) -> Iterator[Document]:
    for node in found:
        reasoners = ", ".join(each["name"] for each in node["reasoners"])
        for instance in node["instances"] or [{"status": NOBODY}]:
            yield {**instance, "node_id": node["node_id"], "version": node["version"], "reasoners": reasoners}


def _show(node: Document, *, as_json: bool) -> None:
    if as_json:
        print_json(node)
        return
    shown: dict[str, Any] = {name: value for name, value in node.items() if name not in {"reasoners", "instances"}}
    print_fields(shown)
    print_table(node["reasoners"], REASONERS, empty="no reasoners")
    print_table(node["instances"], INSTANCES, empty=NOBODY)
