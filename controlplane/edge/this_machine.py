"""Open mode is for programs of this machine: a request that came by a browser's detour or a proxy is refused.

Without keys the address is all that is known of a caller, and a web page that somebody opened on this machine calls
from here too: straight across origins, or after its own name was made to lead here (DNS rebinding).
"""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from litestar.types import ASGIApp, Receive, Scope, Send

from controlplane.domain.door_errors import CrossOrigin, Forwarded, WrongHost
from controlplane.domain.errors import HoldshortError
from controlplane.edge.errors import MEDIA_TYPE, problem

_HOST = re.compile(rb"(localhost|127\.0\.0\.1|\[::1\])(?::([1-9][0-9]{0,4}))?", re.IGNORECASE)
_SCHEME = b"http://"
_DEFAULT_PORT = 80
_LOOKS = frozenset({"GET", "HEAD"})


class Place(NamedTuple):
    """A host of this machine, in small letters, and a port."""

    host: bytes
    port: int


class ThisMachineOnly:
    """Wraps an ASGI application: while it stands open, every request on every path is judged before anything reads it.

    The Host must be localhost, 127.0.0.1 or [::1] with a port of ours, no header may tell of a proxy, and a browser
    must have been sent by a page of ours, or by the person alone (`Sec-Fetch-Site: none`), who can only look.
    """

    def __init__(self, app: ASGIApp, ports: Iterable[int], stands_open: Callable[[], bool]) -> None:
        """Wrap `app`.

        Args:
            app: what is called with the requests that may pass.
            ports: where this process listens; with none every request is refused.
            stands_open: whether nobody needs a key; looked at for each request, as that ends with the first key.
        """
        self._app = app
        self._ports = frozenset(ports)
        self._stands_open = stands_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass one request on, or refuse it."""
        if self._stands_open():
            fault = self._fault(scope)
            if fault is not None:
                await _answer(fault, send)
                return
        await self._app(scope, receive, send)

    def _fault(self, scope: Scope) -> HoldshortError | None:
        headers = [(name.lower(), value.strip()) for name, value in scope["headers"]]
        place = _place(_all(headers, b"host"))
        if place is None or place.port not in self._ports:
            return WrongHost()
        if any(_tells_of_a_proxy(name) for name, _ in headers):
            return Forwarded()
        origins, sites = _all(headers, b"origin"), _all(headers, b"sec-fetch-site")
        if origins and (not origins[0].startswith(_SCHEME) or _place([_bare(each) for each in origins]) != place):
            return CrossOrigin()
        if sites and not _from_here(sites, str(scope.get("method"))):
            return CrossOrigin()
        return None


def _all(headers: list[tuple[bytes, bytes]], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def _place(values: list[bytes]) -> Place | None:
    """The one place that a header names; None if it names none of this machine, or was sent more than once."""
    found = _HOST.fullmatch(values[0]) if len(values) == 1 else None
    return None if found is None else Place(found[1].lower(), int(found[2] or _DEFAULT_PORT))


def _bare(origin: bytes) -> bytes:
    return origin.removeprefix(_SCHEME)


def _tells_of_a_proxy(name: bytes) -> bool:
    return name in {b"forwarded", b"via", b"x-real-ip"} or name.startswith(b"x-forwarded-")


def _from_here(sites: list[bytes], method: str) -> bool:
    # What a person typed or bookmarked has no page behind it; a form that was sent always has one.
    return sites == [b"same-origin"] or (sites == [b"none"] and method in _LOOKS)


async def _answer(fault: HoldshortError, send: Send) -> None:
    status, extra, body = problem(fault)
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(body))} | extra
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body, "more_body": False})
