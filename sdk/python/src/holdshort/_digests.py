"""The digest of a payload: the same for the same content, however it is spaced, ordered or escaped."""

import hashlib
import json
from typing import Any

from holdshort import _strict_json

_quoted = json.JSONEncoder(ensure_ascii=False).encode


def payload_digest(raw: bytes) -> str:
    """The digest that the control plane gives this payload (`payload_digest`): SHA-256, as 64 lower-case hex digits.

    A decision that names it is refused when another payload stands. Numbers count as they are written: 1.10 and 1.1
    are two payloads.

    Args:
        raw: one JSON value, as the bytes that are sent as the payload.

    Raises:
        BadRequest: invalid_body; the bytes are not JSON that all parsers read alike.
    """
    return hashlib.sha256(canonical(raw)).hexdigest()


def canonical(raw: bytes) -> bytes:
    """The bytes that are digested: names sorted by code point, no space, numbers as written, the shortest escapes."""
    return text_of(_strict_json.tokens(raw)).encode()


def text_of(value: Any) -> str:
    """The canonical form of a value that `_strict_json.tokens` returned."""
    if isinstance(value, _strict_json.Number):
        return value
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(name)}:{text_of(value[name])}" for name in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text_of, value)) + "]"
    return _quoted(value)
