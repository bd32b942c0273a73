"""The commands by name, each imported when it is called: looking at approvals need not load the server."""

import gc
import importlib
import importlib.metadata
import os
from typing import Any

import click

from controlplane import telemetry
from controlplane.cli.faults import fault_of

COMMANDS = (
    "demo",
    "dev",
    "serve",
    "migrate",
    "execute",
    "executions",
    "nodes",
    "approvals",
    "feedback",
    "mcp",
    "deliveries",
    "keys",
    "senders",
    "reseal",
    "secrets",
    "audit",
    "doctor",
    "sign",
)


class Commands(click.Group):
    """The group of commands: no fault of theirs ends in a stack trace, except with HOLDSHORT_LOG_LEVEL=debug."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, the most used first."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, out of the module of this name."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = getattr(importlib.import_module(f"controlplane.cli.{cmd_name}"), cmd_name)
        gc.enable()
        return found

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            fault = fault_of(error)
            if os.environ.get("HOLDSHORT_LOG_LEVEL") == "debug" and fault is not error:
                # Not as Python prints it: the texts of exceptions may quote secrets.
                click.echo(telemetry.told(error), err=True)
            raise fault from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(importlib.metadata.version("holdshort-server"), prog_name="holdshort")
def holdshort() -> None:
    """Durable human approvals for AI agents, on PostgreSQL."""
