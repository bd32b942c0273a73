"""Whether what a browser sends can be read on its way: nobody signs in where it can."""

import re

from controlplane.domain.proxies import among, read
from controlplane.edge.deps import Anybody, runtime_of

_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?", re.IGNORECASE)


def is_private(request: Anybody) -> bool:
    """Whether the browser talks HTTPS, or to its own machine.

    Over HTTPS is what came so, what a trusted proxy says came so, and everything where the public URL is an https one:
    who sets that has a proxy in front that ends TLS.
    """
    settings = runtime_of(request).settings
    if (settings.public_url or "").lower().startswith("https://") or request.scope["scheme"] == "https":
        return True
    peer = read(request.client.host) if request.client else None
    if peer is not None and among(peer, settings.trusted_proxies):
        protocols = [each.strip().lower() for each in request.headers.getall("x-forwarded-proto", [])]
        if protocols:
            return protocols == ["https"]
    return bool(_LOOPBACK.fullmatch(request.headers.get("host", "")))
