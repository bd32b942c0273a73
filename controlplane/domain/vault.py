"""The vault: secrets of others as they stand in the database, sealed with a key that does not.

AES-256-GCM with a fresh nonce each; what a secret belongs to is bound to it, so that one row's cannot be put into
another's. The newest master key seals, every one of them opens, so a rotation needs no downtime.
"""

import base64
import hashlib
from collections.abc import Sequence

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from msgspec import Struct

from controlplane.domain.errors import HoldshortError

PREFIX = "hsv1."
KEY_BYTES = 32
NONCE_BYTES = 12
CALLBACK = "callback"


class SecretUnreadable(HoldshortError):
    """A secret was sealed with a master key that is not configured; add it to HOLDSHORT_MASTER_KEYS."""

    code = "secret_unreadable"


class MasterKey(Struct, frozen=True):
    """A key that seals; its name stands with what it sealed, and is made of its own digest."""

    name: str
    key: bytes

    def __repr__(self) -> str:
        """The name alone."""
        return f"MasterKey({self.name!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        """The same for rich."""
        return [("name", self.name)]


class Vault:
    """Seals and opens.

    Args:
        keys: newest first.
    """

    def __init__(self, keys: Sequence[MasterKey]) -> None:
        """At least one key is there."""
        self._newest = keys[0]
        self._keys = {key.name: key for key in keys}

    def seal(self, secret: str, owner: str, nonce: bytes) -> str:
        """A secret as text for the database.

        Args:
            secret: what is kept.
            owner: what it belongs to; needed again to open it.
            nonce: 12 random bytes.
        """
        sealed = AESGCM(self._newest.key).encrypt(nonce, secret.encode(), owner.encode())
        return self.mark + base64.b64encode(nonce + sealed).decode()

    def open(self, text: str, owner: str) -> str:
        """A secret as it was given; one that was kept before there were master keys is returned as it is.

        Raises:
            SecretUnreadable: no configured key opens it, or it belongs to something else.
        """
        if not text.startswith(PREFIX):
            return text
        name, _, body = text.removeprefix(PREFIX).partition(".")
        key = self._keys.get(name)
        try:
            raw = base64.b64decode(body, validate=True)
            if key is None or len(raw) <= NONCE_BYTES:
                raise SecretUnreadable
            return AESGCM(key.key).decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], owner.encode()).decode()
        except (InvalidTag, ValueError):
            raise SecretUnreadable from None

    @property
    def mark(self) -> str:
        """What everything begins with that the newest key sealed; whatever else is kept should be sealed anew."""
        return f"{PREFIX}{self._newest.name}."


def sealed_by(text: str) -> str | None:
    """The name of the master key that sealed a secret; None for one that was never sealed."""
    return text.removeprefix(PREFIX).partition(".")[0] if text.startswith(PREFIX) else None


def sender_secret(sender: str, secret_id: str) -> str:
    """What a sender's secret is sealed for, so that it opens as no other sender's and as none of its others."""
    return f"sender {sender} {secret_id}"


def open_with(vault: Vault | None, text: str, owner: str) -> str:
    """As `Vault.open`, where there may be no vault: then only what was never sealed can be read.

    Raises:
        SecretUnreadable: no configured key opens it.
    """
    if vault is not None:
        return vault.open(text, owner)
    if text.startswith(PREFIX):
        raise SecretUnreadable
    return text


def parse_master_keys(raw: str) -> tuple[MasterKey, ...]:
    """Keys from a setting: base64 of 32 bytes each, comma-separated, newest first.

    Raises:
        ValueError: one is none.
    """
    return tuple(_master_key(entry.strip()) for entry in raw.split(","))


def _master_key(entry: str) -> MasterKey:
    try:
        key = base64.b64decode(entry, validate=True)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ValueError("must be base64 of 32 random bytes, or several of these with commas between, newest first")
    return MasterKey(hashlib.sha256(b"holdshort master key" + key).hexdigest()[:8], key)
