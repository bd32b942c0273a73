"""Every fault that ends a command: one line that says what to do, and an exit code: 1 failed, 2 wrong usage."""

import click

from controlplane import telemetry
from controlplane.domain.errors import DatabaseUnavailable, HoldshortError
from controlplane.settings import SettingsFault


class Fault(click.ClickException):
    """A command's end: what went wrong and what to do."""

    exit_code = 1


class WrongUsage(Fault):
    """The command or its settings are wrong; nothing was tried."""

    exit_code = 2


def fault_of(error: Exception) -> click.ClickException:
    """What a person is told of an error: its own sentence where it has one."""
    if isinstance(error, click.ClickException):
        return error
    if isinstance(error, SettingsFault):
        return WrongUsage(f"the settings are wrong:\n{error}")
    if isinstance(error, DatabaseUnavailable):
        return Fault(f"the database cannot be reached ({reason_of(error.__cause__)}); start it, or correct its URL")
    if isinstance(error, HoldshortError):
        return Fault(error.message)
    return Fault(f"{telemetry.said(error)} (HOLDSHORT_LOG_LEVEL=debug shows where)")


def reason_of(cause: BaseException | None) -> str:
    """Why the database did not do it: the driver's own first line, without what the layers above it wrap around it."""
    error = getattr(cause, "orig", None) or cause
    return (str(error).splitlines() or [type(error).__name__])[0]
