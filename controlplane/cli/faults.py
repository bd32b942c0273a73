"""Every fault a command may meet, as one line that says what to do, and an exit code: 1 failed, 2 wrong usage."""

import logging
import os
from typing import Any

import click

from controlplane.cli.api import ApiFault
from controlplane.cli.postgres import ClusterFault
from controlplane.cli.serving import AddressTaken, FailedToStart
from controlplane.domain.errors import DatabaseUnavailable, HoldshortError
from controlplane.settings import SettingsFault


class Fault(click.ClickException):
    """A command's end: what went wrong and what to do."""

    exit_code = 1


class WrongUsage(Fault):
    """The command or its settings are wrong; nothing was tried."""

    exit_code = 2


class Commands(click.Group):
    """The group of commands: no fault of theirs ends in a stack trace, except with HOLDSHORT_LOG_LEVEL=debug."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if os.environ.get("HOLDSHORT_LOG_LEVEL") == "debug":
                raise
            logging.shutdown()
            raise _fault(error) from error


def _fault(error: Exception) -> Fault:
    if isinstance(error, SettingsFault):
        return WrongUsage(f"the settings are wrong:\n{error}")
    if isinstance(error, DatabaseUnavailable):
        return Fault(f"the database cannot be reached ({error.__cause__}); start it, or correct its URL")
    if isinstance(error, ClusterFault | AddressTaken | FailedToStart | ApiFault | HoldshortError):
        return Fault(str(error))
    return Fault(f"{type(error).__name__}: {error} (HOLDSHORT_LOG_LEVEL=debug shows where)")
