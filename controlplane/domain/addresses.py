"""Addresses of instances: what may be one, which URLs lie under it, and where these are once its node has moved."""

import re

from controlplane.domain.errors import FieldFault
from controlplane.domain.urls import check_http_url

_PARTS = re.compile(r"(?P<scheme>[^/?#:]+)://(?P<host>[^/?#]*?)(?::(?P<port>[0-9]*))?(?P<rest>[/?#].*)?", re.DOTALL)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_SEGMENT_ENDS = ("", "/", "?", "#")


def base_address(field: str, value: str) -> str:
    """The base URL of an instance in its plain form, or `FieldFault`.

    Scheme and host in lower case, no default port, no trailing slash, so that one address has one spelling.
    """
    check_http_url(field, value, userinfo=False)
    if "?" in value or "#" in value:
        raise FieldFault(field, "must not contain a query or a fragment")
    return _plain(value).rstrip("/")


def moved_url(url: str, old_base: str, new_base: str) -> str | None:
    """A URL under one base address as it is under another; None when it does not lie under the old one.

    Whole segments count: `http://h/a` has `http://h/a/b` under it, and not `http://h/ab`.
    """
    base, plain = _plain(old_base).rstrip("/"), _plain(url)
    rest = plain[len(base) :]
    if not plain.startswith(base) or rest[:1] not in _SEGMENT_ENDS:
        return None
    return _plain(new_base).rstrip("/") + rest


def _plain(url: str) -> str:
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return url
    scheme, port = parts["scheme"].lower(), (parts["port"] or "").lstrip("0")
    place = f":{port}" if port and port != _DEFAULT_PORTS.get(scheme) else ""
    return f"{scheme}://{parts['host'].lower()}{place}{parts['rest'] or ''}"
