"""May this server call a host at these addresses? Judged without a look-up or a clock, the same way for every call.

Public addresses may be called. Loopback may in open mode, and loopback and private ranges where the operator's list
allows it. Everything else never is, whatever the list says, and neither is the address that this server listens on.
Of several addresses every one must be allowed.
"""

import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from msgspec import Struct

from controlplane.domain import hosts
from controlplane.domain.allow_list import Entry
from controlplane.domain.egress_ranges import Address, Kind, kind_of, plain, read

SETTING = "HOLDSHORT_CALLBACK_ALLOW"
HOST_RULE = "host"
OWN_RULE = "own"

# Python's own reading takes an address out of brackets wherever they stand, and forgets what stands around them.
_AUTHORITY = re.compile(r"(?:\[[^\[\]]*\]|[^\[\]:]*)(?::[0-9]*)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_WILDCARDS = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on
_BY_LIST = frozenset({Kind.LOOPBACK, Kind.PRIVATE})
_WORDS = {
    Kind.LOOPBACK: "a loopback address",
    Kind.PRIVATE: "a private address",
    Kind.LINK_LOCAL: "a link-local address",
    Kind.METADATA: "the metadata service of a cloud",
    Kind.UNSPECIFIED: "an unspecified address",
    Kind.MULTICAST: "a multicast address",
    Kind.BROADCAST: "the broadcast address",
    Kind.RESERVED: "a reserved address",
    Kind.DOCUMENTATION: "an address for documentation",
    Kind.BENCHMARK: "an address for benchmarks",
    Kind.SIX_TO_FOUR: "a 6to4 address",
    Kind.NAT64: "a NAT64 address",
    Kind.TEREDO: "a Teredo address",
    Kind.EMBEDDED: "an address with an IPv4 address inside",
    OWN_RULE: "the address that this server listens on",
}


class Endpoint(Struct, frozen=True):
    """An address and port that this server listens on; `0.0.0.0` and `::` stand for all of the machine's."""

    address: str
    port: int


class Policy(Struct, frozen=True, kw_only=True):
    """What this server process may call.

    Attributes:
        open_mode: loopback may be called, as everything runs on one developer's machine.
        allow: the operator's list.
        own: where this server listens.
    """

    open_mode: bool = False
    allow: tuple[Entry, ...] = ()
    own: tuple[Endpoint, ...] = ()


class Target(Struct, frozen=True):
    """Whom a caller wants to be called: a name in its plain form, or the address that was written."""

    name: str
    port: int
    literal: Address | None = None


class Refusal(Struct, frozen=True):
    """Why something is not called.

    Attributes:
        rule: the kind of address, `host` for a spelling that is not taken, or `own`.
        setting: what would allow it; None when nothing does.
        written: the address, where the caller wrote it; what a name resolves to is never told.
    """

    rule: str
    setting: str | None = None
    written: str | None = None

    def why(self, *, named: bool = True) -> str:
        """The reason as words that follow on what is refused; without any address where it is not `named`."""
        if self.rule == HOST_RULE:
            return f"its host {hosts.RULE}"
        words = _WORDS[self.rule]
        leads = f"{self.written} is {words}" if self.written and named else f"its host leads to {words}"
        return f"{leads}, which {self.setting} must allow" if self.setting else f"{leads}, which is never called"


def target_of(url: str) -> Target | Refusal:
    """Whom a URL names; none but http and https, and nothing before the host."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return Refusal(HOST_RULE)
    default = _DEFAULT_PORTS.get(parts.scheme)
    whole = "@" not in parts.netloc and _AUTHORITY.fullmatch(parts.netloc)
    if default is None or not whole or ("[" in parts.netloc) != (":" in host):
        return Refusal(HOST_RULE)
    return target(host, default if port is None else port)


def target(host: str, port: int) -> Target | Refusal:
    """Whom a host (an IPv6 address without its brackets) and a port name."""
    address = hosts.literal(host)
    if address is not None:
        return Target(str(address), port, address)
    return Target(hosts.plain_name(host), port) if hosts.is_name(host) else Refusal(HOST_RULE)


def judge(
    policy: Policy,
    called: Target,
    answers: Iterable[str] = (),
    *,
    here: Collection[str] = (),
    allowance: tuple[Entry, ...] = (),
) -> tuple[str, ...] | Refusal:
    """The addresses that may be connected to, in the order of the answers, or the first reason not to call at all.

    Args:
        policy: what this process may call.
        called: whom the caller wants to be called.
        answers: what its name resolves to; not needed for an address.
        here: those of the addresses that are this machine's own.
        allowance: what is allowed beside the operator's list.
    """
    allow = policy.allow + allowance
    found: dict[str, None] = {}
    for address in _addresses(called, answers):
        refusal = _refusal(policy, called, address, allow, here)
        if refusal is not None:
            return refusal
        found[str(address)] = None
    return tuple(found)


def _addresses(called: Target, answers: Iterable[str]) -> list[Address]:
    return [read(each) for each in answers] if called.literal is None else [plain(called.literal)]


def _refusal(
    policy: Policy, called: Target, address: Address, allow: tuple[Entry, ...], here: Collection[str]
) -> Refusal | None:
    written = None if called.literal is None else called.name
    if _is_own(policy, str(address), called.port, here):
        return Refusal(OWN_RULE, None, written)
    kind = kind_of(address)
    if kind is Kind.PUBLIC or (kind is Kind.LOOPBACK and policy.open_mode):
        return None
    if kind not in _BY_LIST:
        return Refusal(kind, None, written)
    covered = any(entry.covers(called.name, called.port, address, kind) for entry in allow)
    return None if covered else Refusal(kind, SETTING, written)


def _is_own(policy: Policy, address: str, port: int, here: Collection[str]) -> bool:
    return any(
        own.port == port and (own.address == address or (own.address in _WILDCARDS and address in here))
        for own in policy.own
    )
