"""A key has no place in a URL: proxies, browsers and logs keep it there; however it is spelled, it is found."""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote

from controlplane.domain.keys import PREFIX

# The parts of a key with a good deal of its secret: what was cut off or mistyped is as good as told.
_SHAPE = re.compile(re.escape(PREFIX) + r"[0-9a-z]{12}_[0-9a-z]{8}", re.IGNORECASE)
_NAMES = frozenset({"api_key", "apikey", "api-key", "x-api-key", "access_token"})
# Encoded more often than this, nothing on the way reads a key in it either.
_MOST_ENCODINGS = 3


def carries_key(scope: Any) -> bool:
    """Whether a request's path or query holds a key, or what is sent as one.

    Args:
        scope: the ASGI scope.
    """
    query: bytes = scope["query_string"]
    path: str = scope["path"]
    if not query and PREFIX not in path and "%" not in path:
        return False
    text = _plain(query.decode("latin-1"))
    if _SHAPE.search(text) or _SHAPE.search(_plain(path)):
        return True
    return any(
        name.strip().lower() in _NAMES or value.strip().startswith(PREFIX)
        for name, value in parse_qsl(text, max_num_fields=None)
    )


def _plain(text: str) -> str:
    for _ in range(_MOST_ENCODINGS):
        decoded = unquote(text)
        if decoded == text:
            break
        text = decoded
    return text
