"""Where the control plane is and which key it is told: what may be sent there, and what must never be."""

import ipaddress
import logging
import os
from urllib.parse import urlsplit

from holdshort._errors import ConnectionFailed, KeyRefused

DEFAULT_URL = "http://127.0.0.1:8080"
log = logging.getLogger("holdshort")
_warned: set[str] = set()


def base_url(given: str | None) -> str:
    """The control plane's address: the argument, HOLDSHORT_URL, or this machine's port 8080.

    Raises:
        ConnectionFailed: it is no http(s) address, so no try could ever reach anything.
    """
    address = (given or os.environ.get("HOLDSHORT_URL") or DEFAULT_URL).rstrip("/")
    if not address.lower().startswith(("http://", "https://")):
        raise ConnectionFailed(f"the control plane's address must begin with http:// or https://, not {address!r}")
    return address


def key_of(given: str | None) -> str | None:
    """The API key: the argument or HOLDSHORT_API_KEY, without the space around it that a file or a shell adds.

    Raises:
        KeyRefused: it cannot stand in a header; nothing was sent, and the message does not show it.
    """
    key = (given or os.environ.get("HOLDSHORT_API_KEY") or "").strip()
    # The HTTP library would name the header's whole value in its error.
    if not all("!" <= character <= "~" for character in key):
        raise KeyRefused(
            "the API key holds a space, a line break or another character that no key has; copy it again from where"
            " `holdshort keys create` printed it"
        )
    return key or None


def warn_if_readable(url: str, key: str | None) -> None:
    """Warn, once for each host, of a key that goes over plain http to another machine: whoever listens has it."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if key is None or parts.scheme.lower() != "http" or is_here(url) or host in _warned:
        return
    _warned.add(host)
    log.warning("the API key is sent to %s unencrypted, for everybody on the way to read; use https", host)


def is_here(url: str) -> bool:
    """Whether an address is this machine's own, which another machine would take for its own."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
