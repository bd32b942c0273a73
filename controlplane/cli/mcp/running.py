"""What the command needs of the rooms that need the protocol's package; imported once it is known to be there."""

from controlplane.cli.mcp.gateway import Gateway
from controlplane.cli.mcp.tools import make_server
from controlplane.cli.mcp.web import door, serve

__all__ = ["Gateway", "door", "make_server", "serve"]
