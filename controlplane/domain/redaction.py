"""Redaction: what is secret by its look or by its name is masked, and what cannot be judged by look is not shown.

This is the last net. Bodies, and texts that callers, agents and receivers gave, are never handed to it: nothing about
them says that they are secret.
"""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

MASK = "***"
DEEPEST = 8
# Of a field's or header's name, with dashes as underscores.
_NAMES = "secret|passw|token|authorization|cookie|signature|api_?key|master_?key|credential|database_url|dsn"
_NAME = re.compile(_NAMES, re.IGNORECASE)
# The same inside of a text: then the rest of its line, or of its quotes, is the value.
_NAMED = rf"(?:{_NAMES.replace('_?', '[-_ ]?').replace('database_url', 'database[-_]url')})[\w-]*"
_LOOKS = tuple(
    (re.compile(pattern, flags), rf"\g<1>{MASK}")
    for pattern, flags in (
        # A password may hold anything, an @, a slash or a ? among it: what stands before the last @ may belong to it,
        # and behind a ? before that nothing is certain any more.
        (r"(://)\S*\?\S*@\S*", 0),
        (r"(://)[^\r\n]*(?=@)", 0),
        (rf"({_NAMED}['\"]\s*[:=,]\s*[bf]?['\"])[^'\"\r\n]+", re.IGNORECASE),
        (rf"({_NAMED}\s*[:=]\s*)(?!['\"]?\*\*\*)[^\s'\"][^'\"\r\n]*", re.IGNORECASE),
        (r"(bearer(?:[\s:]|%20|\+)+)[^\s'\",;)}\]]+", re.IGNORECASE),
        (r"(\bbasic\s+)[A-Za-z0-9+/_-]{8,}=*", re.IGNORECASE),
        (r"(hs_)[0-9a-z]{12}_[0-9a-z]+", re.IGNORECASE),
        (r"((?<![A-Za-z0-9])hs_)[0-9A-Za-z_]{8,}", 0),
        (r"(whsec_)[^\s'\"<>,;)}\]]+", 0),
        (r"(hsv1\.)[^\s'\"<>,;)}\]]+", 0),
        (r"(__Host-[\w-]+=)[^\s;'\"]+", 0),
        (r"(sha256=)[0-9A-Fa-f]{16,}", 0),
        (r"(v1=)[0-9A-Fa-f]{16,}", 0),
        (r"(v1,)[A-Za-z0-9+/]{20,}=*", 0),
        # A signature's 64 digits, and the base64 of 32 bytes, which a master key is. A letter before may be what is
        # left of an escaped line feed.
        (r"()[0-9A-Fa-f]{64,}", 0),
        (r"()[A-Za-z0-9+/_-]{43,}=", 0),
    )
)

_OURS = re.compile(r"(?<=hs_)[0-9a-z]{12}_[0-9a-z]{32}|(?<=whsec_)[A-Za-z0-9+/]{16,}={0,2}")


def is_secret(name: str) -> bool:
    """Whether a field or header of this name holds a secret."""
    return _NAME.search(name.replace("-", "_")) is not None


def masked(text: str) -> str:
    """A text with everything masked in it that looks like a key, a secret, a signature, a cookie or a password."""
    for look, instead in _LOOKS:
        text = look.sub(instead, text)
    return text


def without_keys(text: str) -> str:
    """A text without whole API keys and webhook secrets, which nothing else looks like; JSON stays JSON."""
    return _OURS.sub(MASK, text)


def shown(value: object, depth: int = 0) -> Any:
    """A value as it may be logged: texts masked, in whatever they are nested; of bytes only how many.

    Args:
        value: what is to be logged.
        depth: how deep it is nested; past eight levels nothing is shown.
    """
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        return MASK if depth >= DEEPEST else _nested(value, depth + 1)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, str | date | timedelta | Decimal | UUID | PurePath):
        return masked(str(value))
    # Anything may stand in other objects, so only what they are is said.
    return f"<{type(value).__name__}>"


def member(name: object, value: object, depth: int = 0) -> Any:
    """A named value as it may be logged: nothing of it where its name says that it is a secret."""
    spelled = name.decode("latin-1") if isinstance(name, bytes) else str(name)
    return MASK if is_secret(spelled) else shown(value, depth)


def _nested(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return {str(shown(name, depth)): member(name, each, depth) for name, each in value.items()}
    items = list(value)
    if len(items) == 2 and isinstance(items[0], str | bytes):
        return [shown(items[0], depth), member(items[0], items[1], depth)]  # perhaps a header with its name
    return [shown(item, depth) for item in items]
