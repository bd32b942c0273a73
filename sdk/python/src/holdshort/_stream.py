"""The live stream without I/O: server-sent lines to events, and where to go on after a break."""

from collections.abc import Callable

import msgspec

from holdshort import _core
from holdshort._core import Again, Call, Reply, Unreachable
from holdshort._wire import Event


class Subscription:
    """One reading of a live stream over as many connections as it takes.

    Args:
        make: the request that opens a connection, after the id of the last event that was seen.
        after: that id, when something was seen before.
        patience: seconds without the control plane before it gives up; None for any.
    """

    def __init__(
        self, make: Callable[[str | None], Call[Event]], *, after: str | None = None, patience: float | None
    ) -> None:
        self._make = make
        self._last_id = after
        self._patience = patience
        self._fields: dict[str, str] = {}
        self._tries = 0
        self._lost_at: float | None = None

    def call(self) -> Call[Event]:
        """The request that opens the next connection, after the last event seen; a half-read event is dropped."""
        self._fields = {}
        return self._make(self._last_id)

    def opened(self, reply: Reply) -> None:
        """Check the answer's head; raises Unreachable when it is one to try again, else what it means."""
        if reply.status in _core.RETRIED:
            raise Unreachable(f"answered {reply.status}")
        if reply.status != 200:
            _core.read(self.call(), reply)

    def feed(self, line: str) -> Event | None:
        """Take one line; the event, when the line ends one."""
        self._tries, self._lost_at = 0, None
        if line:
            self._take(line)
            return None
        fields, self._fields = self._fields, {}
        if "data" not in fields:
            return None
        self._last_id = fields.get("id", self._last_id)
        data = msgspec.json.decode(fields["data"])
        return Event(id=self._last_id or "", type=fields.get("event", "message"), data=data)

    def lost(self, failure: Unreachable, now: float, jitter: float) -> float:
        """Seconds until the next connection; raises ConnectionFailed when the time for that is up."""
        self._tries += 1
        self._lost_at = now if self._lost_at is None else self._lost_at
        left = None if self._patience is None else self._patience - (now - self._lost_at)
        verdict = _core.judge(self.call(), failure, self._tries, left, jitter=jitter)
        return verdict.delay if isinstance(verdict, Again) else 0.0

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data" and "data" in self._fields:
            value = f"{self._fields['data']}\n{value}"
        if name in {"id", "event", "data"}:
            self._fields[name] = value
