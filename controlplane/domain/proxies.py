"""Whose request it is: the address that is connected, or, behind proxies that are trusted, the one they forward."""

import re
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network

from controlplane.domain.egress_ranges import Address, Network

MOST_HOPS = 32

_PLAIN = re.compile(r"[0-9A-Fa-f.:]+(/[0-9]{1,3})?")


def parse(value: str) -> tuple[Network, ...]:
    """The proxies of a comma-separated list of addresses and networks.

    Raises:
        ValueError: entries are wrong; says of each which it is by its place, and why.
    """
    found: list[Network] = []
    faults: list[str] = []
    for place, text in enumerate(value.split(","), 1):
        try:
            found.append(_network(text.strip()))
        except ValueError as fault:
            faults.append(f"entry {place} {fault}")
    if faults:
        raise ValueError("; ".join(faults))
    return tuple(found)


def client_of(peer: str | None, forwarded: list[str], trusted: tuple[Network, ...]) -> str | None:
    """The address that a request comes from: the last one that is no trusted proxy.

    Each proxy adds the address that it was connected by, so only what trusted ones added is believed: the list is read
    from its end, up to the first address that is not trusted. What is no address ends the reading: the proxy that sent
    it is then the last that is known. Whatever an untrusted peer forwards is not looked at.

    Args:
        peer: the address that is connected, or None where there is none.
        forwarded: the values of every X-Forwarded-For header, in their order.
        trusted: the proxies that are believed.
    """
    known = None if peer is None else read(peer)
    if known is None:
        return peer
    hops = [hop for value in forwarded for hop in value.split(",")] if trusted else []
    for hop in reversed(hops[-MOST_HOPS:]):
        if not among(known, trusted):
            break
        before = read(hop.strip())
        if before is None:
            break
        known = before
    return str(known)


def read(text: str) -> Address | None:
    """An address in its plain form, with or without a port; None for what is none."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return mapped or found


def among(address: Address, networks: tuple[Network, ...]) -> bool:
    """Whether an address lies in one of some networks."""
    return any(address in network for network in networks)


def _network(text: str) -> Network:
    if not text:
        raise ValueError("is empty")
    try:
        network = ip_network(text, strict=False) if _PLAIN.fullmatch(text) else None
    except ValueError:
        network = None
    if network is None:
        raise ValueError("is neither an IP address nor a network")
    if ip_address(text.partition("/")[0]) != network.network_address:
        raise ValueError(f"has bits beyond its prefix; write {network}")
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError("is an IPv4-mapped network; write its IPv4 form")
    if network.prefixlen == 0:
        raise ValueError("would believe everybody; name the proxies")
    return network
