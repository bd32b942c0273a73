"""The commands by name."""

import importlib.metadata

import click

from controlplane.cli.approvals import approvals
from controlplane.cli.deliveries import deliveries
from controlplane.cli.dev import dev
from controlplane.cli.faults import Commands
from controlplane.cli.migrate import migrate
from controlplane.cli.serve import serve
from controlplane.cli.sign import sign


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("holdshort-server"), prog_name="holdshort")
def holdshort() -> None:
    """Durable human approvals for AI agents, on PostgreSQL."""


for command in (dev, serve, migrate, approvals, deliveries, sign):
    holdshort.add_command(command)
