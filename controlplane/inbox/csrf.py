"""Whether a form was sent by a page of ours: what the browser says of it, and the token that only our page knows."""

import re
from urllib.parse import urlsplit

from controlplane.domain.door_errors import CrossOrigin, FormStale
from controlplane.domain.sessions import is_token_of
from controlplane.edge.deps import Anybody, runtime_of
from controlplane.inbox.session import secret_of

FIELD = "csrf"
HEADER = "X-CSRF-Token"
_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[1-9][0-9]{0,4})?")
_PORTS = {"http": 80, "https": 443}
_FOREIGN = "This was not sent by a page of this server; open the page itself and send it from there. Nothing was done."


def check_origin(request: Anybody) -> None:
    """Refuse what no page of ours has sent.

    `Sec-Fetch-Site`, which no page can set, decides where it is sent; otherwise `Origin` must be ours. A request with
    neither is refused: every browser sends one with a form.

    Raises:
        CrossOrigin: it came from elsewhere, or does not say from where.
    """
    sites = request.headers.getall("sec-fetch-site", [])
    origins = request.headers.getall("origin", [])
    if len(sites) > 1 or len(origins) > 1 or "null" in origins:
        raise CrossOrigin(_FOREIGN)
    if sites:
        if sites != ["same-origin"]:
            raise CrossOrigin(_FOREIGN)
    elif not origins or not _is_ours(request, origins[0]):
        raise CrossOrigin(_FOREIGN)


def check_token(request: Anybody, token: str) -> None:
    """Refuse a form that does not carry the token of the session that it comes with.

    In open mode there is no session, and what the browser says of the form's origin is all that there is.

    Raises:
        FormStale: it is another session's, an older one's, or none.
    """
    if runtime_of(request).open:
        return
    secret = secret_of(request)
    if secret is None or not is_token_of(token, secret):
        raise FormStale


def _is_ours(request: Anybody, origin: str) -> bool:
    place = _place(origin)
    if place is None:
        return False
    public = runtime_of(request).settings.public_url
    if public is not None and place == _place(public):
        return True
    host = request.headers.get("host", "").lower()
    return bool(_LOOPBACK.fullmatch(host)) and place == _place(f"http://{host}")


def _place(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of a URL; None for what has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]
