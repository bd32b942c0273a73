"""Judges who signed a webhook: HMAC-SHA256 over the bytes as received, in three schemes, with one way to fail.

| scheme | headers | signed bytes | fresh |
|---|---|---|---|
| body | X-Webhook-Signature, X-Hub-Signature-256, X-Hax-Signature: `[sha256=]<hex>` | body | always |
| timestamped | the same three: `t=<seconds>,v1=<hex>[,v1=<hex>...]` | `<t>.<body>` | within 300 s |
| standard | webhook-id, webhook-timestamp, webhook-signature (Standard Webhooks) | `<id>.<t>.<body>` | within 300 s |

What a post may cost is bounded, whoever sends it: ten signatures are looked at, `webhook_secrets.tried` says against
which secrets, and fifty HMACs over the body are made at most, as many as ten signatures with five secrets can take. One
HMAC serves every signature that claims the same key and the same signed bytes, so that an honest post takes one for
each secret. When fifty are made, what is left can only hold by one of them.

`sdk/conformance/signatures.json` holds the cases that every implementation must agree on.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import islice, product

import msgspec

from controlplane.domain.errors import SignatureInvalid, SignatureMissing, SignatureStale, WebhookNotConfigured
from controlplane.domain.webhook_secrets import MAX_IN_ALL, WHSEC, WebhookSecret, tried

TOLERANCE_SECONDS = 300
MAX_SIGNATURES = 10
MAX_HMACS = MAX_IN_ALL

Headers = Sequence[tuple[bytes, bytes]]

_PLAIN_HEADERS = frozenset({b"x-webhook-signature", b"x-hub-signature-256", b"x-hax-signature"})
_STANDARD_HEADER = b"webhook-signature"
_SPACE = b" \t"
_HEX = re.compile(rb"[0-9a-fA-F]{64}")
_SECONDS = re.compile(rb"[0-9]{1,12}")
_WEBHOOK_ID = re.compile(rb"[A-Za-z0-9_-]{1,128}")
# The last digit before the padding carries four bits only: one text for each signature.
_STANDARD = re.compile(rb"v1,([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)")


class Scheme(StrEnum):
    """How the signature that held was made."""

    BODY = "body"
    TIMESTAMPED = "timestamped"
    STANDARD = "standard"


class Verified(msgspec.Struct, frozen=True):
    """Proof that a configured sender signed these bytes.

    Attributes:
        sender: the name of the secret that matched, "" for a secret without a name.
        scheme: one of `Scheme`.
        webhook_id: the signed message id, only where Standard Webhooks is the scheme that held.
    """

    sender: str
    scheme: str
    webhook_id: str | None


class _Candidate(msgspec.Struct, frozen=True):
    scheme: Scheme
    mac: bytes
    prefix: bytes = b""
    seconds: int | None = None
    webhook_id: str | None = None

    def fresh(self, now: int) -> bool:
        return self.seconds is None or abs(now - self.seconds) <= TOLERANCE_SECONDS


def verify(headers: Headers, body: bytes, *, secrets: Sequence[WebhookSecret], now: int) -> Verified:
    """Who signed `body`; one good and fresh signature among all candidates is proof.

    When two secrets have the same text the one that is tried first is named.

    Args:
        headers: every header line as received, names in any case.
        body: the body as received.
        secrets: of all senders, each sender's newest first.
        now: the time in whole Unix seconds.

    Raises:
        WebhookNotConfigured: there is no secret.
        SignatureMissing: there is no signature header, or only empty ones.
        SignatureStale: a signature holds, but none that holds is within 300 s of `now`.
        SignatureInvalid: anything else, whatever the headers contain.
    """
    if not secrets:
        raise WebhookNotConfigured
    lines = [(name.lower(), value.strip(_SPACE)) for name, value in headers]
    if not any(value for name, value in lines if name == _STANDARD_HEADER or name in _PLAIN_HEADERS):
        raise SignatureMissing
    holding = _holding(lines, body, tried(secrets))
    stale = False
    for candidate, sender in holding:
        if candidate.fresh(now):
            return Verified(sender, candidate.scheme, candidate.webhook_id)
        stale = True
    raise SignatureStale if stale else SignatureInvalid


def sign_hex(secret: str, body: bytes) -> str:
    """64 hex digits over the body alone, for `X-Webhook-Signature: sha256=<hex>`."""
    return _mac(secret.encode(), b"", body).hex()


def sign_timestamped(secret: str, body: bytes, *, timestamp: int) -> str:
    """The value `t=<seconds>,v1=<hex>` for X-Webhook-Signature or X-Hax-Signature; `timestamp` in Unix seconds."""
    return f"t={timestamp},v1={_mac(secret.encode(), b'%d.' % timestamp, body).hex()}"


def sign_standard(secret: str, body: bytes, *, webhook_id: str, timestamp: int) -> str:
    """The value `v1,<base64>` for webhook-signature, see https://www.standardwebhooks.com.

    Args:
        secret: `whsec_` and base64, or any other text, which is its UTF-8 bytes.
        body: the bytes that are sent.
        webhook_id: what goes into webhook-id, `[A-Za-z0-9_-]{1,128}`.
        timestamp: what goes into webhook-timestamp, Unix seconds.
    """
    prefix = f"{webhook_id}.{timestamp}.".encode()
    return "v1," + base64.b64encode(_mac(_standard_key(secret), prefix, body)).decode()


def _holding(lines: Headers, body: bytes, secrets: Sequence[WebhookSecret]) -> Iterator[tuple[_Candidate, str]]:
    """The candidates that a secret bears out, each with that secret's sender."""
    # A large body is hashed once for each key and prefix, however many signatures claim the same.
    known: dict[tuple[bytes, bytes], bytes] = {}
    for candidate in islice(_candidates(lines), MAX_SIGNATURES):
        for each in secrets:
            key = _standard_key(each.secret) if candidate.scheme is Scheme.STANDARD else each.secret.encode()
            signed = (key, candidate.prefix)
            if signed not in known and len(known) < MAX_HMACS:
                known[signed] = _mac(*signed, body)
            if hmac.compare_digest(known.get(signed, b""), candidate.mac):
                yield candidate, each.sender


def _candidates(lines: Headers) -> Iterator[_Candidate]:
    """Standard Webhooks first: when several schemes hold, its id is the one worth remembering."""
    yield from _standard(lines)
    for name, value in lines:
        if name in _PLAIN_HEADERS:
            yield from _plain(value)


def _standard(lines: Headers) -> Iterator[_Candidate]:
    ids = [value for name, value in lines if name == b"webhook-id" and _WEBHOOK_ID.fullmatch(value)]
    times = [value for name, value in lines if name == b"webhook-timestamp" and _SECONDS.fullmatch(value)]
    entries = [entry for name, value in lines if name == _STANDARD_HEADER for entry in value.split()]
    matches = filter(None, map(_STANDARD.fullmatch, entries))
    for match, webhook_id, seconds in product(matches, ids, times):
        yield _Candidate(
            Scheme.STANDARD,
            base64.b64decode(match[1]),
            prefix=b"%b.%b." % (webhook_id, seconds),
            seconds=int(seconds),
            webhook_id=webhook_id.decode(),
        )


def _plain(value: bytes) -> Iterator[_Candidate]:
    digits = value.removeprefix(b"sha256=")
    if _HEX.fullmatch(digits):
        yield _Candidate(Scheme.BODY, binascii.unhexlify(digits))
        return
    fields = [field.strip(_SPACE).partition(b"=") for field in value.split(b",")]
    times = [content for name, _, content in fields if name == b"t"]
    if len(times) != 1 or not _SECONDS.fullmatch(times[0]):
        return
    for name, _, content in fields:
        if name == b"v1" and _HEX.fullmatch(content):
            mac = binascii.unhexlify(content)
            yield _Candidate(Scheme.TIMESTAMPED, mac, prefix=times[0] + b".", seconds=int(times[0]))


def _standard_key(secret: str) -> bytes:
    if secret.startswith(WHSEC):
        try:
            # An empty key would let anybody sign, so nothing after the prefix is no base64 secret.
            return base64.b64decode(secret.removeprefix(WHSEC), validate=True) or secret.encode()
        except ValueError:
            pass
    return secret.encode()


def _mac(key: bytes, prefix: bytes, body: bytes) -> bytes:
    digest = hmac.new(key, prefix, hashlib.sha256)
    digest.update(body)
    return digest.digest()
