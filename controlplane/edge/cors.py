"""Which pages of other origins may call: those of origins that are configured, where people answer questions.

What they send is proven by a key in a header, never by a cookie, so that a page gets nothing from whoever is signed in.
"""

from collections.abc import Callable, Iterable

from litestar.types import Scope

Headers = list[tuple[bytes, bytes]]

METHODS = {
    "/api/human-feedback/submit": b"POST",
    "/api/human-feedback/pending": b"GET",
    "/api/human-feedback/events": b"GET",
}
_ASKS = b"access-control-request-method"
_GRANT: Headers = [
    (b"access-control-allow-headers", b"authorization, content-type, last-event-id, x-api-key, x-request-id"),
    (b"access-control-max-age", b"600"),
]
_SHOWN = (b"access-control-expose-headers", b"retry-after, x-request-id")


class Cors:
    """Grants what browsers ask for pages of other origins, or does not.

    Args:
        origins: whose pages may call.
        stands_open: whether nobody needs a key; then no page of another origin may call.
    """

    def __init__(self, origins: Iterable[str], stands_open: Callable[[], bool]) -> None:
        """With no origin nothing is ever granted."""
        self._origins = frozenset(origin.encode() for origin in origins)
        self._stands_open = stands_open

    def preflight(self, scope: Scope) -> Headers | None:
        """The headers that grant a preflight; None when it is refused."""
        origin, method = self._granted(scope), METHODS.get(scope["path"])
        if origin is None or method is None or _all(scope, _ASKS) != [method]:
            return None
        return [*_for(origin), (b"access-control-allow-methods", method), *_GRANT]

    def answer(self, scope: Scope) -> Headers:
        """The headers that let a page read an answer; none for all that may not."""
        origin = self._granted(scope)
        return [] if origin is None else [*_for(origin), _SHOWN]

    def _granted(self, scope: Scope) -> bytes | None:
        """The origin that calls, where its pages may."""
        if not self._origins or scope.get("path") not in METHODS or self._stands_open():
            return None
        sent = _all(scope, b"origin")
        return sent[0] if len(sent) == 1 and sent[0] in self._origins else None


def _all(scope: Scope, wanted: bytes) -> list[bytes]:
    return [value for name, value in scope["headers"] if name.lower() == wanted]


def _for(origin: bytes) -> Headers:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]
