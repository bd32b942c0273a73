"""What kind of place an IP address is: a table of our own, as `ipaddress.is_global` is wrong for several ranges.

Only `PUBLIC` is called without more; `LOOPBACK` and `PRIVATE` by permission; every other kind never is.
"""

from bisect import bisect_right
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Kind(StrEnum):
    """The kinds of addresses, each the name of the rule that refuses it."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    LINK_LOCAL = "link_local"
    METADATA = "metadata"
    UNSPECIFIED = "unspecified"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    RESERVED = "reserved"
    DOCUMENTATION = "documentation"
    BENCHMARK = "benchmark"
    SIX_TO_FOUR = "6to4"
    NAT64 = "nat64"
    TEREDO = "teredo"
    EMBEDDED = "embedded"


CALLABLE = frozenset({Kind.PUBLIC, Kind.LOOPBACK, Kind.PRIVATE})
_ROUTABLE = frozenset({Kind.PUBLIC, Kind.PRIVATE})

# The first row that holds an address names its kind, so that what lies inside of a wider range stands before it.
_V4 = (
    ("168.63.129.16/32", Kind.METADATA),
    ("100.100.100.200/32", Kind.METADATA),
    ("192.0.0.192/32", Kind.METADATA),
    ("169.254.169.254/32", Kind.METADATA),
    ("127.0.0.0/8", Kind.LOOPBACK),
    ("10.0.0.0/8", Kind.PRIVATE),
    ("172.16.0.0/12", Kind.PRIVATE),
    ("192.168.0.0/16", Kind.PRIVATE),
    ("100.64.0.0/10", Kind.PRIVATE),
    ("169.254.0.0/16", Kind.LINK_LOCAL),
    ("0.0.0.0/8", Kind.UNSPECIFIED),
    ("192.0.0.0/24", Kind.RESERVED),
    ("192.0.2.0/24", Kind.DOCUMENTATION),
    ("198.51.100.0/24", Kind.DOCUMENTATION),
    ("203.0.113.0/24", Kind.DOCUMENTATION),
    ("198.18.0.0/15", Kind.BENCHMARK),
    ("192.88.99.0/24", Kind.SIX_TO_FOUR),
    ("224.0.0.0/4", Kind.MULTICAST),
    ("255.255.255.255/32", Kind.BROADCAST),
    ("240.0.0.0/4", Kind.RESERVED),
    ("0.0.0.0/0", Kind.PUBLIC),
)
# Metadata of AWS (with its other services there), Google, Oracle and Scaleway lies in fc00::/7.
_V6 = (
    ("::1/128", Kind.LOOPBACK),
    ("::/128", Kind.UNSPECIFIED),
    ("fd00:ec2::/32", Kind.METADATA),
    ("fd20:ce::254/128", Kind.METADATA),
    ("fd00:c1::a9fe:a9fe/128", Kind.METADATA),
    ("fd00:42::42/128", Kind.METADATA),
    ("fc00::/7", Kind.PRIVATE),
    ("fe80::/10", Kind.LINK_LOCAL),
    ("ff00::/8", Kind.MULTICAST),
    ("::/96", Kind.EMBEDDED),
    ("::ffff:0:0:0/96", Kind.EMBEDDED),
    ("64:ff9b::/96", Kind.NAT64),
    ("64:ff9b:1::/48", Kind.NAT64),
    ("2001::/32", Kind.TEREDO),
    ("2001:2::/48", Kind.BENCHMARK),
    ("2001:db8::/32", Kind.DOCUMENTATION),
    ("3fff::/20", Kind.DOCUMENTATION),
    ("2001::/23", Kind.RESERVED),
    ("2002::/16", Kind.SIX_TO_FOUR),
    ("2000::/3", Kind.PUBLIC),
    ("::/0", Kind.RESERVED),
)
_ISATAP = 0x5EFE
_UNIVERSAL_BIT = 0x0200_0000


class _Table:
    """The rows cut into stretches of one kind each, so that an address is found by one bisection."""

    def __init__(self, rows: tuple[tuple[str, Kind], ...]) -> None:
        networks = [(ip_network(text), kind) for text, kind in rows]
        ranges = [(int(each.network_address), int(each.broadcast_address), kind) for each, kind in networks]
        self._starts = sorted({first for first, _, _ in ranges} | {last + 1 for _, last, _ in ranges})[:-1]
        self._kinds = [next(kind for first, last, kind in ranges if first <= at <= last) for at in self._starts]

    def kind(self, number: int) -> Kind:
        """The kind of an address."""
        return self._kinds[bisect_right(self._starts, number) - 1]

    def kinds(self, first: int, last: int) -> list[Kind]:
        """The kinds from one address to another."""
        return self._kinds[bisect_right(self._starts, first) - 1 : bisect_right(self._starts, last)]


_TABLES = {4: _Table(_V4), 6: _Table(_V6)}


def read(text: str) -> Address:
    """An address as a resolver gives it; a zone falls away, and an IPv4-mapped one is the IPv4 address in it.

    Raises:
        ValueError: it is none.
    """
    return plain(ip_address(text.partition("%")[0]))


def plain(address: Address) -> Address:
    """The IPv4 address in an IPv4-mapped one, as the system connects to that; any other address unchanged."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def kind_of(address: Address) -> Kind:
    """The kind of an address."""
    number = int(address)
    kind = _TABLES[address.version].kind(number)
    return Kind.EMBEDDED if address.version == 6 and kind in _ROUTABLE and _embeds(number) else kind


def never_called(network: Network) -> Kind | None:
    """The kind of a network whose addresses are refused whatever is allowed; None when some may be called."""
    kinds = _TABLES[network.version].kinds(int(network.network_address), int(network.broadcast_address))
    return None if CALLABLE.intersection(kinds) else kinds[0]


def _embeds(number: int) -> bool:
    """True for an ISATAP address, whose last 32 bits are an IPv4 address that a tunnel would lead to."""
    return (number >> 32) & 0xFFFF_FFFF & ~_UNIVERSAL_BIT == _ISATAP
