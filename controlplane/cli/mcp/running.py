"""What the command needs of the rooms that need the protocol's package; imported once it is known to be there."""

from controlplane.cli.mcp.gateway import Gateway
from controlplane.cli.mcp.tools import make_server
from controlplane.cli.mcp.web import serve

__all__ = ["Gateway", "make_server", "serve"]
