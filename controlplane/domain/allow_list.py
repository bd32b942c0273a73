"""What an operator allows to be called beside public addresses: hosts and networks, each for one port or for all."""

import re
from ipaddress import IPv6Network, ip_address, ip_network

from msgspec import Struct

from controlplane.domain.egress_ranges import Address, Kind, Network, never_called
from controlplane.domain.hosts import is_name, plain_name

WIDEST = {4: 8, 6: 16}
DANGEROUS_SETTING = "HOLDSHORT_DANGEROUS_CALLBACK_ALLOW"

_BRACKETED = re.compile(r"\[(?P<inside>[^\[\]]*)\](?P<prefix>/[0-9]+)?(?::(?P<port>.*))?", re.DOTALL)
_NETWORK = re.compile(r"(?P<inside>[0-9A-Fa-f.:]+)(?P<prefix>/[0-9]+)(?::(?P<port>.*))?", re.DOTALL)
_BARE_V6 = re.compile(r"(?P<inside>[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f.:]*)(?P<prefix>)(?P<port>(?!))?")
_HOST = re.compile(r"(?P<inside>[^:]*)(?P<prefix>)(?::(?P<port>.*))?", re.DOTALL)
_PLAIN_NETWORK = re.compile(r"[0-9A-Fa-f.:]+(?:/[0-9]+)?")
_LOCALHOST = re.compile(r"(?:.+\.)?localhost")


class Entry(Struct, frozen=True):
    """One entry of the list: the name of a host, or a network; its port, or None for every port."""

    name: str | None = None
    network: Network | None = None
    port: int | None = None

    def covers(self, host: str, port: int, address: Address, kind: Kind) -> bool:
        """True when this entry lets an address be called.

        A name lets through what it resolves to, loopback only where it is `localhost`: whoever answers for any other
        name would otherwise choose among this machine's own services.

        Args:
            host: the name that the caller wrote, in its plain form.
            port: where to.
            address: one of the addresses of the host.
            kind: the address's kind.
        """
        if self.port not in {None, port}:
            return False
        if self.network is not None:
            return address in self.network
        return host == self.name and (kind is not Kind.LOOPBACK or _LOCALHOST.fullmatch(host) is not None)


def parse(value: str, *, dangerous: bool = False) -> tuple[Entry, ...]:
    """The entries of a comma-separated list: `host[:port]`, `network[:port]` or `[IPv6 address or network][:port]`.

    Args:
        value: the list; `*` or no port at all stands for every port.
        dangerous: whether networks wider than /8 (IPv4) and /16 (IPv6) are taken.

    Raises:
        ValueError: entries are wrong; says of each which it is by its place, and why.
    """
    found: list[Entry] = []
    faults: list[str] = []
    for place, text in enumerate(value.split(","), 1):
        try:
            found.append(_entry(text.strip(), dangerous=dangerous))
        except ValueError as fault:
            faults.append(f"entry {place} {fault}")
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(found)


def _entry(text: str, *, dangerous: bool) -> Entry:
    if not text:
        raise ValueError("is empty")
    if "//" in text or "@" in text:
        raise ValueError("must be a host or network with or without a port, not a URL")
    parts = next(filter(None, (form.fullmatch(text) for form in (_BRACKETED, _NETWORK, _BARE_V6, _HOST))), None)
    if parts is None:
        raise ValueError("is neither a host nor a network; an IPv6 address with a port stands in brackets")
    port = _port(parts["port"])
    inside = f"{parts['inside']}{parts['prefix'] or ''}"
    if parts.re is _HOST and is_name(inside):
        return Entry(name=plain_name(inside), port=port)
    return Entry(network=_network(inside, dangerous=dangerous), port=port)


def _port(text: str | None) -> int | None:
    if text in {None, "*"}:
        return None
    if not re.fullmatch(r"[0-9]{1,5}", text or "") or not 1 <= int(text or "") <= 65_535:
        raise ValueError("needs a port from 1 to 65535, or `*` for every port")
    return int(text or "")


def _network(text: str, *, dangerous: bool) -> Network:
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        network = None
    if network is None or not _PLAIN_NETWORK.fullmatch(text):
        raise ValueError("is neither a host name, an IP address nor a network")
    if "/" in text and ip_address(text.partition("/")[0]) != network.network_address:
        raise ValueError(f"has bits beyond its prefix; write {network}")
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError("is an IPv4-mapped network; write its IPv4 form")
    kind = never_called(network)
    if kind is not None:
        raise ValueError(f"is never called ({kind}), whatever this list says")
    if network.prefixlen < WIDEST[network.version] and not dangerous:
        raise ValueError(f"is wider than /{WIDEST[network.version]}, which needs {DANGEROUS_SETTING}=on")
    return network
