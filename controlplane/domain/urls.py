"""URLs that callers give: http or https, with a host, short, and nothing hidden in them."""

import re
from urllib.parse import urlsplit

from controlplane.domain.errors import FieldFault

MAX_URL = 2048
_UNCLEAN = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029\\]")


def check_http_url(field: str, value: str, *, userinfo: bool = True) -> str:
    """Return an http(s) URL unchanged, or raise `FieldFault`.

    Args:
        field: the field's name, for the fault.
        value: what the caller sent.
        userinfo: whether `user:password@` may stand in it; never in an address that is called.
    """
    if len(value) > MAX_URL:
        raise FieldFault(field, f"must have at most {MAX_URL} characters")
    if _UNCLEAN.search(value):
        raise FieldFault(field, "must not contain spaces, control characters or backslashes")
    try:
        parts = urlsplit(value)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise FieldFault(field, "must be an http or https URL") from None
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        raise FieldFault(field, "must be an http or https URL with a host")
    if not userinfo and "@" in parts.netloc:
        raise FieldFault(field, "must not contain a user name or password")
    return value
