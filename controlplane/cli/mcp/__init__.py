"""`holdshort mcp`: people's answers as tools for any agent that speaks the Model Context Protocol."""

from controlplane.cli.mcp.command import mcp

__all__ = ["mcp"]
