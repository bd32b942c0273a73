"""The ways of saying no to a request before anything that it asks for is looked at: how it came, and from where."""

from controlplane.domain.errors import HoldshortError


class PreflightRefused(HoldshortError):
    """No page of this origin may call this, so no preflight is granted; call from a server (HOLDSHORT_CORS_ORIGINS)."""

    code = "preflight_refused"


class WrongHost(HoldshortError):
    """In open mode a server answers to localhost, 127.0.0.1 and [::1] with its port only; call it so, or make a key."""

    code = "wrong_host"


class Forwarded(HoldshortError):
    """In open mode nothing may come through a proxy, and a header tells of one; call directly, or make a key."""

    code = "forwarded_request"


class CrossOrigin(HoldshortError):
    """In open mode no page of another origin may call; open this address by typing it, or make a key."""

    code = "cross_origin"


class FormStale(HoldshortError):
    """This form is of another session, or of none; load its page again and send it from there."""

    code = "form_stale"


class HttpsNeeded(HoldshortError):
    """Nobody signs in over a connection that others can read; use the https address, or localhost on its machine."""

    code = "https_needed"


class KeyInUrl(HoldshortError):
    """A key must not stand in a URL, which is logged on its way; send it as X-API-Key, and revoke this one."""

    code = "key_in_url"


class HeaderTooLarge(HoldshortError):
    """The header block is larger than 32 KiB; send fewer or shorter headers."""

    code = "header_too_large"


class RequestTimeout(HoldshortError):
    """The request did not arrive in time; send it again, faster."""

    code = "request_timeout"


class MalformedRequest(HoldshortError):
    """The bytes are no HTTP request; check the client or what stands between it and this server."""

    code = "malformed_request"


class TooManyConnections(HoldshortError):
    """This server holds as many connections as it may; send it again after Retry-After, and close what is not used."""

    code = "too_many_connections"
