"""Hosts of URLs, of which only three spellings are taken, as programs disagree about what all the others mean.

A name of letters, digits, hyphens and underscores whose last label is no number; an IPv4 address of four plain decimal
numbers; an IPv6 address without a zone, which stands in brackets in a URL. So `127.1`, `0x7f000001`, `017700000001`,
`2130706433`, `127.0.0.1.`, `127%2e0.0.1`, `127。0。0。1` and letters beyond ASCII are refused where they stand: nobody
has to know which resolver takes them for an address. A name in another script is written as `xn--...`.
"""

import re
from ipaddress import IPv4Address, IPv6Address

from controlplane.domain.egress_ranges import Address

MAX_NAME = 253
RULE = (
    "must be a name of the letters a-z, digits, - and _ (in another script its xn-- form), an IPv4 address of four"
    " decimal numbers, or an IPv6 address in brackets"
)

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*(?P<last>{_LABEL})\.?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE | re.ASCII)


def is_name(host: str) -> bool:
    """True for a host name whose last label no parser could take for a number."""
    found = _NAME.fullmatch(host) if len(host) <= MAX_NAME + 1 else None
    return found is not None and _NUMBER.fullmatch(found["last"]) is None


def plain_name(host: str) -> str:
    """A name in small letters, without the dot that may end it."""
    return host.lower().removesuffix(".")


def literal(host: str) -> Address | None:
    """The address that a host (without brackets) is; None when it is no plain address."""
    try:
        return IPv6Address(host) if ":" in host and "%" not in host else IPv4Address(host)
    except ValueError:
        return None
