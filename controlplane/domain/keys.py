"""API keys: what one looks like, what it may do, and how a key that was shown once is recognised.

A key is `hs_<id>_<secret><checksum>`: the id finds the row, the secret is 130 random bits of which only the SHA-256 is
kept (nothing slower is needed against so many), and the checksum tells a mistyped key from a wrong one without a look.
"""

import hashlib
import hmac
import zlib
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from controlplane.domain import allow_list
from controlplane.domain.allow_list import Entry
from controlplane.domain.errors import FieldFault

PREFIX = "hs_"
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_ID_LENGTH = 12
_SECRET_LENGTH = 26
_CHECKSUM_LENGTH = 6
ENTROPY_BYTES = 32


class Scope(StrEnum):
    """What a key may do: work as an agent, decide as a person, or administer."""

    AGENT = "agent"
    REVIEW = "review"
    ADMIN = "admin"


class Key(Struct, frozen=True, kw_only=True):
    """A key as it is kept; `node_id` binds an agent's key to one node.

    `allow` is what that node may have called beside what the server calls anyway, as entries of an allow list.
    """

    key_id: str
    name: str
    scopes: tuple[Scope, ...]
    node_id: str | None
    created_at: datetime
    allow: tuple[str, ...] = ()
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None


class Presented(Struct, frozen=True):
    """A key as a caller sent it: the id that finds it, and the digest that proves it."""

    key_id: str
    digest: bytes


def mint(entropy: bytes) -> tuple[str, str, bytes]:
    """A new key: its id, the text that is shown once, and the digest that is kept.

    Args:
        entropy: 32 random bytes.
    """
    number = int.from_bytes(entropy[:ENTROPY_BYTES], "big")
    key_id = _spell(number, _ID_LENGTH)
    return (key_id, *secret_for(key_id, entropy))


def secret_for(key_id: str, entropy: bytes) -> tuple[str, bytes]:
    """A further secret for a key: the text that is shown once, and the digest that is kept."""
    number = int.from_bytes(entropy[:ENTROPY_BYTES], "big") >> (5 * _ID_LENGTH)
    secret = _spell(number, _SECRET_LENGTH)
    return f"{PREFIX}{key_id}_{secret}{_checksum(key_id, secret)}", _digest(secret)


def read(text: str) -> Presented | None:
    """A key from what a caller sent; None for what cannot be one of ours, such as a mistyped one."""
    if not text.startswith(PREFIX) or len(text) != len(PREFIX) + _ID_LENGTH + 1 + _SECRET_LENGTH + _CHECKSUM_LENGTH:
        return None
    key_id, separator, rest = text[len(PREFIX) :].partition("_")
    secret, checksum = rest[:_SECRET_LENGTH], rest[_SECRET_LENGTH:]
    if not separator or len(key_id) != _ID_LENGTH or not set(key_id + rest) <= set(_ALPHABET):
        return None
    return Presented(key_id, _digest(secret)) if checksum == _checksum(key_id, secret) else None


def holds(presented: Presented, digests: Iterable[bytes]) -> bool:
    """Whether a presented key is proven by one of its digests; each is compared in constant time."""
    # Each is compared, so that the time says nothing of which one it was.
    return bool(sum(hmac.compare_digest(presented.digest, digest) for digest in digests))


def usable(key: Key, now: datetime) -> bool:
    """Whether a key is neither revoked nor past its time."""
    return key.revoked_at is None and (key.expires_at is None or now < key.expires_at)


def serves(key: Key, node_id: str, now: datetime) -> bool:
    """Whether an agent can use a key for a node now."""
    return usable(key, now) and Scope.AGENT in key.scopes and key.node_id in {None, node_id}


def check_scopes(scopes: Iterable[str], node_id: str | None) -> tuple[Scope, ...]:
    """The scopes of a new key in a fixed order.

    Raises:
        FieldFault: none, an unknown one, an agent's beside a person's, or a node without an agent's.
    """
    named = set(scopes)
    known = {scope.value for scope in Scope}
    if not named or not named <= known:
        raise FieldFault("scopes", f"must be one or more of {', '.join(sorted(known))}")
    if Scope.AGENT in named and len(named) > 1:
        raise FieldFault("scopes", "agent must stand alone: whoever asks must not be able to decide")
    if node_id is not None and Scope.AGENT not in named:
        raise FieldFault("node_id", "binds a key of scope agent only")
    return tuple(scope for scope in Scope if scope.value in named)


def check_allow(allow: Iterable[str], node_id: str | None, *, dangerous: bool = False) -> tuple[str, ...]:
    """The entries of a new key's own allowance, each once.

    Args:
        allow: entries of an allow list, or several with commas between.
        node_id: the node that the key is bound to: an allowance is one node's.
        dangerous: whether networks wider than /8 (IPv4) and /16 (IPv6) are taken.

    Raises:
        FieldFault: an entry is wrong, or the key is bound to no node.
    """
    entries = tuple(dict.fromkeys(entry.strip() for each in allow for entry in each.split(",")))
    if entries and node_id is None:
        raise FieldFault("allow", "goes with a key that is bound to a node (--node): it lets that node be called")
    try:
        if entries:
            allow_list.parse(",".join(entries), dangerous=dangerous)
    except ValueError as fault:
        raise FieldFault("allow", str(fault)) from fault
    return entries


@lru_cache(maxsize=1024)
def allowance(allow: tuple[str, ...]) -> tuple[Entry, ...]:
    """What a key's entries let be called; entries that cannot be read let nothing be called."""
    if not allow:
        return ()
    try:
        # Whether wide networks are taken was settled when the key was made.
        return allow_list.parse(",".join(allow), dangerous=True)
    except ValueError:
        return ()


def _spell(number: int, length: int) -> str:
    return "".join(_ALPHABET[(number >> (5 * place)) & 31] for place in range(length))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _checksum(key_id: str, secret: str) -> str:
    return _spell(zlib.crc32(f"{key_id}_{secret}".encode()), _CHECKSUM_LENGTH)
