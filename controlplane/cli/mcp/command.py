"""The command itself: over standard input and output, or over HTTP."""

import importlib
import importlib.util
import os

import click

from controlplane.cli.api import key_headers, url_option
from controlplane.cli.faults import Fault, WrongUsage
from controlplane.cli.mcp.door import door
from controlplane.domain.errors import FieldFault
from controlplane.domain.ids import check_name

TOKEN_VARIABLE = "HOLDSHORT_MCP_TOKEN"  # noqa: S105  # its name
DEFAULT_PORT = 8070


@click.command()
@click.option("--http", "over_http", is_flag=True, help="Streamable HTTP under /mcp instead of standard input.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=DEFAULT_PORT,
    show_default=True,
    help="With --http: the port; 0 takes a free one.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME[:PORT]",
    help="With --http: another name that clients reach it by (their Host header).",
)
@click.option("--node", default="mcp", show_default=True, help="The node id that approvals are asked under.")
@url_option
def mcp(*, over_http: bool, host: str, port: int, hosts: tuple[str, ...], node: str, url: str) -> None:
    """Give agents people to ask, as tools of the Model Context Protocol.

    The tools are human_feedback, request_approval, wait_for_approval and ask. It is a client of the control plane at
    HOLDSHORT_URL, with the key of scope agent in HOLDSHORT_API_KEY. An agent's program starts it by itself, and talks
    with it over standard input and output.

    With --http everybody who reaches it asks with that key. So wherever there is one, or the address is not this
    machine's, every request must carry `Authorization: Bearer` with the value of HOLDSHORT_MCP_TOKEN (16 characters or
    more; it will not start without). Requests whose Host or Origin is another are refused (DNS rebinding). It speaks
    plain HTTP: beyond this machine put TLS in front of it.
    """
    if importlib.util.find_spec("mcp") is None:
        raise Fault("the tools need the protocol's package: pip install 'holdshort-server[mcp]'")
    headers = key_headers()
    _check_node(node)
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    opened = door(host, hosts, token, has_key=bool(headers)) if over_http else None
    # Only now, as this needs that package.
    running = importlib.import_module("controlplane.cli.mcp.running")
    server = running.make_server(running.Gateway(url, headers), node)
    if opened is None:
        server.run("stdio")
    else:
        running.serve(server, opened, port)


def _check_node(node: str) -> None:
    try:
        check_name("node", node)
    except FieldFault as fault:
        raise WrongUsage(f"--node {fault.rule}") from fault
