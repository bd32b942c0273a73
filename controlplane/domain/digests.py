"""The digest of a payload: the same for the same content however it is spaced, ordered or escaped.

Canonical form: names sorted by code point, no white space, numbers as written, strings in UTF-8 with only the
escapes that JSON requires. `sdk/conformance/payload_digests.json` fixes it for every implementation.
"""

import hashlib
import json

from controlplane.domain import json_text
from controlplane.domain.json_text import JSON, Number

_ESCAPED = json.JSONEncoder(ensure_ascii=False).encode


def payload_digest(raw: bytes) -> str:
    """SHA-256 of the canonical form, as 64 lower-case hex digits.

    Args:
        raw: one JSON value as received.

    Raises:
        InvalidBody: `raw` is not strict JSON, see `json_text.parse`.
    """
    return hashlib.sha256(canonical(raw)).hexdigest()


def canonical(raw: bytes) -> bytes:
    """The canonical form of one JSON value; raises `InvalidBody` as `payload_digest` does."""
    parts: list[str] = []
    _write(json_text.parse(raw), parts)
    return "".join(parts).encode()


def _write(value: JSON, parts: list[str]) -> None:
    """Append the text of `value`; recursion is bounded by the parser's depth."""
    if isinstance(value, Number):
        parts.append(value)
    elif isinstance(value, dict):
        _write_object(value, parts)
    elif isinstance(value, list):
        _write_array(value, parts)
    else:
        parts.append(_ESCAPED(value))


def _write_object(members: dict[str, JSON], parts: list[str]) -> None:
    opening = "{"
    for name in sorted(members):
        parts.append(f"{opening}{_ESCAPED(name)}:")
        _write(members[name], parts)
        opening = ","
    parts.append("}" if members else "{}")


def _write_array(items: list[JSON], parts: list[str]) -> None:
    opening = "["
    for item in items:
        parts.append(opening)
        _write(item, parts)
        opening = ","
    parts.append("]" if items else "[]")
