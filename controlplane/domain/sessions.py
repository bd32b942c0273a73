"""Sessions: what a person who signed in with a key holds, how long it holds, and the token that its forms carry.

A cookie is 32 random bytes of which only the SHA-256 is kept. A form's token is made from the same bytes, so that it is
of one session alone and nothing is stored for it; who reads the token cannot make the cookie from it.
"""

import base64
import binascii
import hashlib
import hmac
import re
from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

ENTROPY_BYTES = 32
IDLE = timedelta(hours=12)
LONGEST = timedelta(days=7)
SEEN_EVERY = timedelta(minutes=1)
_FORMS = b"holdshort forms 1"
_COOKIE = re.compile(r"[A-Za-z0-9_-]{43}")


class Why(StrEnum):
    """Why a session ended."""

    SIGNED_OUT = "signed_out"
    REPLACED = "replaced"  # its browser signed in anew
    IDLE = "idle"
    TOO_OLD = "too_old"
    KEY = "key"  # its key, or the secret that it was opened with, is no good any more


class Session(Struct, frozen=True, kw_only=True):
    """A session as it is kept; `key_digest` is of the secret that it was opened with."""

    digest: bytes
    session_id: str
    key_id: str
    key_digest: bytes
    created_at: datetime
    seen_at: datetime
    ended_at: datetime | None = None


def cookie_of(secret: bytes) -> str:
    """What a browser keeps of a session.

    Args:
        secret: 32 random bytes.
    """
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")


def read(cookie: str) -> bytes | None:
    """The secret in a cookie; None for what cannot be one of ours."""
    if not _COOKIE.fullmatch(cookie):
        return None
    try:
        secret = base64.urlsafe_b64decode(cookie + "=")
    except binascii.Error:
        return None
    # Of two spellings of the same bytes only ours is taken.
    return secret if cookie_of(secret) == cookie else None


def digest_of(secret: bytes) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(secret).digest()


def token_of(secret: bytes) -> str:
    """What every form of a session carries, and no other page can know."""
    return cookie_of(hmac.digest(secret, _FORMS, "sha256"))


def is_token_of(token: str, secret: bytes) -> bool:
    """Whether a form's token is this session's; compared in constant time."""
    return hmac.compare_digest(token.encode(), token_of(secret).encode())


def holds(session: Session, now: datetime) -> bool:
    """Whether a session was not ended, was used in the last 12 hours, and is younger than 7 days."""
    return session.ended_at is None and now < session.seen_at + IDLE and now < session.created_at + LONGEST


def is_worth_noting(session: Session, now: datetime) -> bool:
    """Whether its use at a moment is to be kept: once a minute at most."""
    return now - session.seen_at >= SEEN_EVERY
