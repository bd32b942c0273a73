"""The server's and the SDK's verification are written apart, and say the same of every header that can be sent."""

import base64
import hmac

import pytest
from holdshort.webhooks import InvalidSignature, verify

from controlplane.domain import signatures
from controlplane.domain.errors import SignatureInvalid, SignatureMissing, SignatureStale
from controlplane.domain.webhook_secrets import WebhookSecret

NOW = 1_790_000_000
SECRET = "a-secret-of-21-letters"
BODY = b'{"requestId":"r1","decision":"approved"}'
MAC = hmac.digest(SECRET.encode(), BODY, "sha256").hex()
TIMED = signatures.sign_timestamped(SECRET, BODY, timestamp=NOW)
STANDARD = signatures.sign_standard(SECRET, BODY, webhook_id="msg_1", timestamp=NOW)
STANDARD_LINES = [("webhook-id", "msg_1"), ("webhook-timestamp", str(NOW))]
LOOSE = STANDARD[:-2] + chr(ord(STANDARD[-2]) + 1) + "="
MANY = ",".join(["v1=" + "0" * 64] * 10)

HELD = {
    "space and tabs around": [("X-Webhook-Signature", f" \tsha256={MAC}\t ")],
    "tabs between the parts": [("X-Hax-Signature", TIMED.replace(",", "\t,\t"))],
    "another part that looks like a digest": [("X-Hax-Signature", f"{TIMED},x=sha256=1")],
    "a part without a name": [("X-Hax-Signature", f",{TIMED},,")],
    "two ids, one of them signed": [*STANDARD_LINES, ("webhook-id", "msg_2"), ("webhook-signature", STANDARD)],
    "two times, one of them signed": [*STANDARD_LINES, ("webhook-timestamp", "1"), ("webhook-signature", STANDARD)],
    "a time and an id that are none": [
        ("webhook-id", "a b"),
        ("webhook-timestamp", "now"),
        *STANDARD_LINES,
        ("webhook-signature", STANDARD),
    ],
    "a tab between signatures": [*STANDARD_LINES, ("webhook-signature", f"v1a,x\t{STANDARD}")],
    "the tenth signature": [("X-Hax-Signature", TIMED.replace(",", f",{MANY[:-68]},"))],
}
REFUSED = {
    "a space beyond ASCII": [("X-Webhook-Signature", f"\xa0sha256={MAC}")],
    "a line feed": [("X-Webhook-Signature", f"sha256={MAC}\n")],
    "two words for the digest": [("X-Webhook-Signature", f"sha256=sha256={MAC}")],
    "the word in capitals": [("X-Webhook-Signature", f"SHA256={MAC}")],
    "base64 with bits beyond its end": [*STANDARD_LINES, ("webhook-signature", LOOSE)],
    "base64 without its end": [*STANDARD_LINES, ("webhook-signature", STANDARD.rstrip("="))],
    "a space beyond ASCII between signatures": [*STANDARD_LINES, ("webhook-signature", f"v1a,x\xa0{STANDARD}")],
    "the eleventh signature": [("X-Hax-Signature", TIMED.replace(",", f",{MANY},"))],
    "two times in one value": [("X-Hax-Signature", f"t={NOW},{TIMED}")],
    "a time with a sign": [("X-Hax-Signature", TIMED.replace("t=", "t=+"))],
}


def outcomes(headers: list[tuple[str, str]], body: bytes, secret: str) -> tuple[str, str]:
    lines = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    try:
        signatures.verify(lines, body, secrets=(WebhookSecret("", secret),), now=NOW)
        ours = "held"
    except (SignatureInvalid, SignatureMissing, SignatureStale) as refusal:
        ours = refusal.code
    try:
        verify(headers, body, [secret], now=NOW)
        theirs = "held"
    except InvalidSignature as refusal:
        theirs = refusal.code
    return ours, theirs


@pytest.mark.parametrize("name", HELD)
def test_both_accept(name: str) -> None:
    assert outcomes(HELD[name], BODY, SECRET) == ("held", "held")


@pytest.mark.parametrize("name", REFUSED)
def test_both_refuse(name: str) -> None:
    assert outcomes(REFUSED[name], BODY, SECRET) == ("invalid_signature", "invalid_signature")


@pytest.mark.parametrize("secret", ["whsec_", "whsec_====", "whsec_not base64", "whsec_é"])
def test_an_empty_key_signs_nothing(secret: str) -> None:
    """What follows `whsec_` may be nothing at all, and nobody may sign with that."""
    signed = f"msg_1.{NOW}.".encode() + BODY
    for key, expected in ((b"", "invalid_signature"), (secret.encode(), "held")):
        value = "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
        headers = [*STANDARD_LINES, ("webhook-signature", value)]
        assert outcomes(headers, BODY, secret) == (expected, expected)
