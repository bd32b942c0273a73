"""Waiting for the end of a run that was called, without I/O: held calls under one key, until it is over."""

from typing import Any

from holdshort import _node_routes
from holdshort._core import Call
from holdshort._wire import Executed

# What stands between often cuts a call that is silent for a minute.
_HOLD_S = 50.0
# The first call is short, so that it is soon known that the run was made; from then on no outage is too long.
_FIRST_HOLD_S = 1.0
_PACE_S = 1.0


class Calling:
    """One call of a reasoner.

    Args:
        node_id: the agent.
        reasoner: its function's name.
        input: JSON.
        wait: seconds to wait for the end; None for as long as it takes.
        key: joins the run that it started before; a new one when None.
    """

    def __init__(
        self,
        node_id: str,
        reasoner: str,
        input: Any,  # noqa: A002  # the wire's own word
        *,
        wait: float | None,
        key: str | None,
    ) -> None:
        self._target = (node_id, reasoner, input)
        self._key = key or _node_routes.new_key()
        self._wait = wait
        self._until: float | None = None
        self._stands: Executed | None = None
        self._asked_at = 0.0

    @property
    def execution_id(self) -> str:
        """Of the run, once the first call was answered."""
        return self._stands.execution_id if self._stands else ""

    def next(self, now: float) -> Call[Executed] | None:
        """The next call to send; None when the run is over or the time is up."""
        if self._stands is None and self._wait is not None:
            self._until = now + self._wait
        left = _HOLD_S if self._until is None else max(0.0, self._until - now)
        if self._stands is not None and (self._stands.final or not left):
            return None
        self._asked_at = now
        longest = _HOLD_S if self._stands else _FIRST_HOLD_S
        return _node_routes.held_execute(*self._target, key=self._key, wait=min(left, longest))

    def patience(self, own: float | None) -> float | None:
        """Seconds to go on sending it: the client's own, and once the run is made as long as it is waited for."""
        if self._stands is None or own is None:
            return own
        return None if self._until is None else max(own, self._until - self._asked_at)

    def took(self, stands: Executed, now: float) -> float:
        """Take an answer; the seconds to pause before the next call."""
        self._stands = stands
        if stands.final:
            return 0.0
        # A control plane that stops, or has too many waits, answers at once; that must not become a busy loop.
        paced = _PACE_S - (now - self._asked_at)
        left = paced if self._until is None else self._until - now
        return max(0.0, min(paced, left))
