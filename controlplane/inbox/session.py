"""The cookie that a session lives in, and who a request's cookie signs in."""

from litestar.datastructures import Cookie

from controlplane.domain import sessions
from controlplane.domain.errors import NotAuthenticated
from controlplane.edge.deps import Anybody, runtime_of
from controlplane.edge.throttle import counted, is_suspect
from controlplane.inbox.viewers import ANYBODY, Viewer, viewer_from

COOKIE = "__Host-holdshort"
_SECONDS = int(sessions.LONGEST.total_seconds())


def cookie(secret: bytes) -> Cookie:
    """A session's cookie: for our own pages over HTTPS or on this machine, and out of a script's sight."""
    return _cookie(sessions.cookie_of(secret), _SECONDS)


def no_cookie() -> Cookie:
    """What takes a session's cookie out of a browser."""
    return _cookie("", 0)


def secret_of(request: Anybody) -> bytes | None:
    """The secret in a request's cookie; None where none of ours came, or more than one that differ."""
    sent = {value for header in request.headers.getall("cookie", []) for value in _values(header)}
    return sessions.read(sent.pop()) if len(sent) == 1 else None


async def signed_in(request: Anybody, *, used: bool) -> Viewer | None:
    """Who looks: in open mode anybody, otherwise who is signed in; None for nobody.

    Args:
        request: what is asked; `used` says that a person asks it, not a script by itself.
        used: whether their twelve hours begin anew.
    """
    runtime = runtime_of(request)
    if runtime.open:
        return ANYBODY
    secret = secret_of(request)
    if secret is None:
        return None
    signed = await runtime.sessions.recognise(sessions.digest_of(secret), used=used, suspect=is_suspect(request))
    if signed is None:
        # Counted with the wrong keys, but never told to wait: an old cookie is no fault of a person.
        counted(request, NotAuthenticated())
        return None
    return viewer_from(signed, secret)


def _cookie(value: str, seconds: int) -> Cookie:
    return Cookie(key=COOKIE, value=value, path="/", max_age=seconds, secure=True, httponly=True, samesite="lax")


def _values(header: str) -> list[str]:
    pairs = (pair.strip().partition("=") for pair in header.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]
