"""Who gets in over HTTP: whoever does asks people in the name of the key that this server has."""

import ipaddress
from collections.abc import Sequence

from msgspec import Struct

from controlplane.cli.faults import WrongUsage

LEAST_TOKEN = 16
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class Door(Struct, frozen=True, kw_only=True):
    """Who gets in: the address to listen on, the names it is reached by, and the token, empty where none is needed."""

    host: str
    names: tuple[str, ...]
    token: str


def door(host: str, names: Sequence[str], token: str, *, has_key: bool) -> Door:
    """A door that is never open to strangers.

    Args:
        host: the address to listen on.
        names: further names of it.
        token: what callers must show, or nothing.
        has_key: whether whoever gets in acts with an API key.

    Raises:
        WrongUsage: it would stand open, or the token is too short.
    """
    if token and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable() or " " in token):
        raise WrongUsage(f"HOLDSHORT_MCP_TOKEN must be {LEAST_TOKEN} or more printable ASCII characters without spaces")
    here = _is_this_machine(host)
    if not token and (has_key or not here):
        why = "acts with your API key" if has_key else f"is reached from elsewhere ({host})"
        raise WrongUsage(
            f"`holdshort mcp --http` {why}: set HOLDSHORT_MCP_TOKEN to a long random value (openssl rand -hex 24), "
            "which clients send as `Authorization: Bearer`"
        )
    own = LOOPBACK_NAMES if here else (f"[{host}]" if ":" in host else host,)
    return Door(host=host, names=(*own, *names), token=token)


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
