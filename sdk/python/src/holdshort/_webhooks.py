"""Signing and verifying decisions: HMAC-SHA256 over the bytes as sent, in each of the schemes a receiver may meet."""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Literal

from holdshort._errors import InvalidSignature, StaleSignature

Scheme = Literal["body", "timestamped", "standard"]
TOLERANCE_S = 300
_HEX_HEADERS = ("x-webhook-signature", "x-hub-signature-256", "x-hax-signature")
_STANDARD = ("webhook-id", "webhook-timestamp", "webhook-signature")
_MOST_SIGNATURES = 10
_MOST_SECRETS = 5
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_TIME = re.compile(r"[0-9]{1,12}")
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
# The last digit before the padding carries four bits only: one text for each signature.
_ENTRY = re.compile(rb"v1,([A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)")
_SPACE = " \t"
Headers = Mapping[str, str] | Iterable[tuple[str, str]]


class Verified:
    """Names what proved a webhook: its scheme and, in the standard one, its id.

    Args:
        scheme: "body", "timestamped" or "standard".
        webhook_id: for telling repeats apart; None in the other schemes.
    """

    __slots__ = ("scheme", "webhook_id")

    def __init__(self, scheme: Scheme, webhook_id: str | None) -> None:
        self.scheme = scheme
        self.webhook_id = webhook_id


class _Candidate:
    """One signature that was sent: what it claims to sign, and when."""

    __slots__ = ("mac", "scheme", "signed", "time", "webhook_id")

    def __init__(self, scheme: Scheme, mac: bytes, signed: bytes, time: str | None, webhook_id: str | None) -> None:
        self.scheme = scheme
        self.mac = mac
        self.signed = signed
        self.time = time
        self.webhook_id = webhook_id


def sign(
    secret: str, body: bytes, *, scheme: Scheme = "standard", now: int = 0, webhook_id: str = ""
) -> dict[str, str]:
    """The headers that prove a body.

    Args:
        secret: shared with the receiver; in the standard scheme `whsec_` + base64 is decoded.
        body: the exact bytes that are sent.
        scheme: "standard" (Standard Webhooks), "timestamped" (`t=,v1=`) or "body" (`sha256=`, no time).
        now: unix seconds, for the schemes with a time.
        webhook_id: unique for each message, for the standard scheme: `[A-Za-z0-9_-]{1,128}`.

    Raises:
        ValueError: an empty secret, or the standard scheme without a proper id.
    """
    if not secret:
        raise ValueError("secret must not be empty: anybody could sign with it")
    if scheme == "body":
        return {"X-Webhook-Signature": f"sha256={_mac(secret.encode(), body).hex()}"}
    if scheme == "timestamped":
        mac = _mac(secret.encode(), b"%d." % now + body)
        return {"X-Webhook-Signature": f"t={now},v1={mac.hex()}"}
    if not _ID.fullmatch(webhook_id):
        raise ValueError("webhook_id must be 1-128 of A-Z a-z 0-9 _ -")
    mac = _mac(standard_key(secret), f"{webhook_id}.{now}.".encode() + body)
    signature = f"v1,{base64.b64encode(mac).decode()}"
    return dict(zip(_STANDARD, (webhook_id, str(now), signature), strict=True))


def verify(headers: Headers, body: bytes, secrets: Sequence[str], *, now: int) -> Verified:
    """Prove that one of the secrets signed exactly this body, not more than 300 s from now.

    Args:
        headers: as received; a repeated header may come as several pairs.
        body: the bytes as received, never parsed and written again.
        secrets: newest first; every one is accepted. An empty one proves nothing.
        now: unix seconds.

    Raises:
        StaleSignature: one holds, but its time is too far away.
        InvalidSignature: none holds, none was sent, or there is no secret; `code` says which.
    """
    # What stands for an unset variable would let anybody sign.
    known = [secret for secret in secrets if secret][:_MOST_SECRETS]
    if not known:
        raise InvalidSignature("no secret is configured, so nothing can be proven", code="not_configured")
    if not _any_sent(headers):
        raise InvalidSignature("no signature header was sent", code="missing_signature")
    candidates = islice(_candidates(headers, body), _MOST_SIGNATURES)
    held = [each for each in candidates if _holds(each, known)]
    for each in held:
        if each.time is None or abs(now - int(each.time)) <= TOLERANCE_S:
            return Verified(each.scheme, each.webhook_id)
    raise StaleSignature if held else InvalidSignature


def standard_holds(headers: Headers, body: bytes, secret: str) -> bool:
    """True when a Standard Webhooks signature holds under this secret, whatever its time."""
    return any(_holds(each, [secret]) for each in islice(_standard(_pairs(headers), body), _MOST_SIGNATURES))


def standard_key(secret: str) -> bytes:
    """The key of the standard scheme: what follows `whsec_` decoded from base64, any other text as it is."""
    if secret.startswith("whsec_"):
        try:
            # An empty key would let anybody sign, so nothing after the prefix is no base64 secret.
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True) or secret.encode()
        except ValueError:
            return secret.encode()
    return secret.encode()


def _mac(key: bytes, signed: bytes) -> bytes:
    return hmac.digest(key, signed, hashlib.sha256)


def _holds(candidate: _Candidate, secrets: Sequence[str]) -> bool:
    key = standard_key if candidate.scheme == "standard" else str.encode
    return any(hmac.compare_digest(_mac(key(secret), candidate.signed), candidate.mac) for secret in secrets)


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name.lower(), value.strip(_SPACE)) for name, value in pairs]


def _any_sent(headers: Headers) -> bool:
    names = {*_HEX_HEADERS, "webhook-signature"}
    return any(name in names and value for name, value in _pairs(headers))


def _candidates(headers: Headers, body: bytes) -> Iterator[_Candidate]:
    pairs = _pairs(headers)
    yield from _standard(pairs, body)
    for name, value in pairs:
        if name in _HEX_HEADERS:
            mac = _unhex(value.removeprefix("sha256="))
            yield from _timestamped(value, body) if mac is None else [_Candidate("body", mac, body, None, None)]


def _timestamped(value: str, body: bytes) -> Iterator[_Candidate]:
    parts = [part.strip(_SPACE).partition("=")[::2] for part in value.split(",")]
    times = [text for name, text in parts if name == "t"]
    if len(times) != 1 or not _TIME.fullmatch(times[0]):
        return
    signed = f"{times[0]}.".encode() + body
    for name, text in parts:
        mac = _unhex(text) if name == "v1" else None
        if mac is not None:
            yield _Candidate("timestamped", mac, signed, times[0], None)


def _standard(pairs: list[tuple[str, str]], body: bytes) -> Iterator[_Candidate]:
    ids, times, lists = ([value for name, value in pairs if name == wanted] for wanted in _STANDARD)
    # As bytes, since text is split at spaces beyond ASCII too.
    entries = filter(None, map(_ENTRY.fullmatch, " ".join(lists).encode("utf-8", "replace").split()))
    for entry, webhook_id, time in product(entries, filter(_ID.fullmatch, ids), filter(_TIME.fullmatch, times)):
        signed = f"{webhook_id}.{time}.".encode() + body
        yield _Candidate("standard", base64.b64decode(entry[1]), signed, time, webhook_id)


def _unhex(digits: str) -> bytes | None:
    return bytes.fromhex(digits) if _HEX.fullmatch(digits) else None
