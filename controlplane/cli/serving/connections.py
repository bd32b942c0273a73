"""How many connections one process holds: past its limit the one that was idle longest goes, and then newcomers."""

from typing import Protocol

from controlplane import telemetry

DEFAULT_LIMIT = 30_000

_log = telemetry.logger("connections")


class Idle(Protocol):
    """A connection that can be ended while nothing is asked on it."""

    def end_idle(self) -> None:
        """End it."""


class Connections:
    """The connections of one process, so that its memory and file descriptors are bounded.

    Args:
        limit: how many there may be at once.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        """None yet."""
        self._limit = limit
        self._idle: dict[Idle, None] = {}
        self._full = False

    def admit(self, there: int) -> bool:
        """Whether a connection that was just made may stay; makes room by ending the one that was idle longest.

        Args:
            there: how many there are, with this one.
        """
        if there <= self._limit:
            self._full = False
            return True
        if not self._full:
            self._full = True
            _log.warning("too_many_connections", limit=self._limit)
        longest = next(iter(self._idle), None)
        if longest is None:
            return False
        del self._idle[longest]
        longest.end_idle()
        return True

    def idle(self, connection: Idle) -> None:
        """Nothing is asked on this one from now on."""
        self._idle[connection] = None

    def busy(self, connection: Idle) -> None:
        """Something is asked on this one, or it is gone."""
        self._idle.pop(connection, None)
