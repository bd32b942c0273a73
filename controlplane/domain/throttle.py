"""Failed keys and signatures, counted by where they come from; what is right is never refused by a count."""

from ipaddress import IPv6Address
from math import ceil

from msgspec import Struct

from controlplane.domain.proxies import read

MOST_IN_A_MINUTE = 60
WINDOW_SECONDS = 60.0
REMEMBERED = 20_000
_INTERFACE_BITS = 64


class _Count(Struct):
    """Failures of one source since its first one, which opens its minute."""

    since: float
    failures: int = 0


class Failures:
    """The failures of one server process: 60 from one source in a minute, and a limit from then on.

    It is asked with a failure in hand, so it can only say how that is answered. Processes share nothing: the `shares`
    processes of one command divide the limit (each has at least 1), and every machine has its own. At most 20,000
    sources are remembered; the minute that began first is forgotten first, so that whoever wants to be forgotten must
    fail from 20,000 other addresses, each of which has 60 failures of its own for the asking.

    Args:
        shares: how many processes divide the limit.
        remembered: of how many sources a count is kept.
    """

    def __init__(self, shares: int = 1, remembered: int = REMEMBERED) -> None:
        """Nobody has failed yet."""
        self._most = max(1, MOST_IN_A_MINUTE // shares)
        self._remembered = remembered
        # In the order in which their minutes began: a new minute stands at the end.
        self._counts: dict[str, _Count] = {}

    def count(self, address: str | None, now: float) -> int:
        """Count a failure; the seconds after which to try again, 0 while the limit is not passed.

        Args:
            address: where it came from; those without an address count as one.
            now: seconds of a clock that only grows.
        """
        source = source_of(address)
        found = self._counts.get(source)
        if found is None or now - found.since >= WINDOW_SECONDS:
            self._counts.pop(source, None)
            self._make_room()
            found = self._counts[source] = _Count(now)
        found.failures += 1
        return ceil(found.since + WINDOW_SECONDS - now) if found.failures > self._most else 0

    def passed(self, address: str | None, now: float) -> bool:
        """Whether the limit is reached, so that another failure would be past it."""
        found = self._counts.get(source_of(address))
        return found is not None and found.failures >= self._most and now - found.since < WINDOW_SECONDS

    def __len__(self) -> int:
        """How many sources are remembered."""
        return len(self._counts)

    def _make_room(self) -> None:
        while len(self._counts) >= self._remembered:
            del self._counts[next(iter(self._counts))]


def source_of(address: str | None) -> str:
    """What an address is counted as: an IPv4 address as itself, an IPv6 one as its /64, which is one customer's."""
    if address is None or ":" not in address:
        return address or ""
    found = read(address)
    if not isinstance(found, IPv6Address):
        return address if found is None else str(found)
    return f"{int(found) >> _INTERFACE_BITS:x}/64"
