"""Signed webhooks: an accept is right only if a second, simple reading computes a signature that stands there.

The other reading goes the other way around: it makes each signature that a secret could have made for what the headers
claim, and looks whether it is there. The SDK's own verification must come to the same end on every input.
"""

import base64
import hashlib
import hmac
import re
from typing import NamedTuple

from holdshort import _webhooks
from holdshort._errors import InvalidSignature, StaleSignature

from controlplane.domain import signatures
from controlplane.domain.errors import SignatureInvalid, SignatureMissing, SignatureStale
from controlplane.domain.signatures import Headers, Verified
from controlplane.domain.webhook_secrets import WebhookSecret
from tests.fuzz.draw import Draw
from tests.fuzz.outcomes import Disagreement, FalseAccept

NOW = 1_790_000_000
PLAIN = (b"X-Webhook-Signature", b"X-Hub-Signature-256", b"X-Hax-Signature")
POOL = (
    WebhookSecret("desk", "a-secret-of-21-letters"),
    WebhookSecret("legal", "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="),
    WebhookSecret("", "sécret-with-an-é-inside"),
    WebhookSecret("odd", "whsec_not base64 at all"),
    WebhookSecret("tail", "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="),
    WebhookSecret("bare", "MDEyMzQ1Njc4OWFiY2RlZg=="),
    WebhookSecret("padded", "whsec_===="),
)
STRANGER = "a-secret-of-somebody-else"
BODIES = (
    b'{"requestId":"r1","decision":"approved","feedback":"fine"}',
    b'{"requestId":"r1","decision":"rejected"}',
    b"",
    b"1790000000.{}",
    b"\x00\xff not text",
)
TIMES = (b"%d" % NOW, b"%d" % (NOW - 300), b"%d" % (NOW - 301), b"%d" % (NOW + 300), b"%d" % (NOW + 301))
ODD_TIMES = (
    b"0%d" % NOW,
    b"+%d" % NOW,
    b"-%d" % NOW,
    b"%d.0" % NOW,
    b" %d" % NOW,
    b"%d " % NOW,
    b"1_790_000_000",
    b"",
    b"0",
    b"999999999999",
    b"1000000000000",
    "１７９００00000".encode(),  # noqa: RUF001
    b"%d\n" % NOW,
    b"%d." % NOW,
)
IDS = (b"msg_1", b"a" * 128, b"a" * 129, b"", b"a.b", b"msg 1", b"-_", "é".encode(), b"msg_1\n")


class Case(NamedTuple):
    """A webhook as received, and what it is verified against."""

    headers: Headers
    body: bytes
    secrets: tuple[WebhookSecret, ...]


class Proof(NamedTuple):
    """A signature that was really made by a configured secret."""

    sender: str
    scheme: str
    webhook_id: str | None
    fresh: bool


def case_of(draw: Draw) -> Case:
    """Signatures that hold, nearly hold, or once held for another body."""
    secrets = tuple(draw.several(POOL, 4)) or POOL[:3]
    body = draw.choice(BODIES)
    headers: list[tuple[bytes, bytes]] = []
    for _ in range(1 + draw.below(3)):
        headers += _signed(draw, body, draw.choice([*(each.secret for each in secrets), STRANGER]))
    for _ in range(draw.below(3)):
        _disturb(draw, headers)
    return Case(headers, draw.mutated(body, 2) if draw.once_in(4) else body, secrets)


def try_verify(data: bytes) -> str:
    """One webhook, verified here."""
    return judge(case_of(Draw(data)))


def try_both(data: bytes) -> str:
    """One webhook, verified here and by the SDK."""
    return compare(case_of(Draw(data)))


def judge(case: Case) -> str:
    """Verify, and hold the outcome against the other reading."""
    held = proofs(case)
    fresh = {each[:3] for each in held if each.fresh}
    try:
        found = signatures.verify(case.headers, case.body, secrets=case.secrets, now=NOW)
    except (SignatureInvalid, SignatureMissing, SignatureStale) as refusal:
        if fresh and not _beyond_caps(case):
            raise Disagreement(f"refused as {refusal.code}, but {fresh} holds") from None
        if isinstance(refusal, SignatureStale) and not held:
            raise FalseAccept("called stale, and so as good as right, but nothing holds") from None
        if held and not isinstance(refusal, SignatureStale) and not _beyond_caps(case):
            raise Disagreement(f"called {refusal.code}, but holds and is stale") from None
        return refusal.code
    if not isinstance(found, Verified) or (found.sender, found.scheme, found.webhook_id) not in fresh:
        raise FalseAccept(f"accepted as {found}, but only {fresh} holds")
    return f"accepted {found.scheme}"


def compare(case: Case) -> str:
    """Both implementations say the same, within what both look at."""
    if _beyond_caps(case):
        return "beyond the caps"
    ours, theirs = _ours(case), _theirs(case)
    if ours != theirs:
        raise Disagreement(f"the server says {ours}, the SDK says {theirs}")
    return ours[0]


def proofs(case: Case) -> set[Proof]:
    """Whatever the configured secrets really signed in these headers."""
    lines = [(name.lower(), value.strip(b" \t")) for name, value in case.headers]
    plain = [value for name, value in lines if name in {each.lower() for each in PLAIN}]
    found: set[Proof] = set()
    for secret in case.secrets:
        key = secret.secret.encode()
        whole = hmac.digest(key, case.body, "sha256").hex().encode()
        for value in plain:
            if value[-64:].lower() == whole and value[:-64] in {b"", b"sha256="}:
                found.add(Proof(secret.sender, "body", None, True))
            found |= _timed_proofs(secret.sender, key, value, case.body)
        found |= _standard_proofs(secret, lines, case.body)
    return found


def _timed_proofs(sender: str, key: bytes, value: bytes, body: bytes) -> set[Proof]:
    pieces = [piece.strip(b" \t") for piece in value.split(b",")]
    times = [piece[2:] for piece in pieces if piece.startswith(b"t=")]
    if len(times) != 1 or not _is_time(times[0]):
        return set()
    expected = b"v1=" + hmac.digest(key, times[0] + b"." + body, "sha256").hex().encode()
    # The name has one spelling, the digits have two.
    holds = any(piece[:3] == b"v1=" and piece.lower() == expected for piece in pieces)
    return {Proof(sender, "timestamped", None, _fresh(times[0]))} if holds else set()


def _standard_proofs(secret: WebhookSecret, lines: Headers, body: bytes) -> set[Proof]:
    entries = {entry for name, value in lines if name == b"webhook-signature" for entry in value.split()}
    found = set()
    for at in {value for name, value in lines if name == b"webhook-timestamp" and _is_time(value)}:
        for webhook_id in {value for name, value in lines if name == b"webhook-id" and _is_id(value)}:
            signed = webhook_id + b"." + at + b"." + body
            mac = hmac.new(_standard_key(secret.secret), signed, hashlib.sha256).digest()
            if b"v1," + base64.b64encode(mac) in entries:
                found.add(Proof(secret.sender, "standard", webhook_id.decode(), _fresh(at)))
    return found


def _standard_key(secret: str) -> bytes:
    """What follows `whsec_`, where it is base64 of something; nothing may sign with an empty key."""
    text = secret.removeprefix("whsec_")
    if text == secret or not re.fullmatch(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", text):
        return secret.encode()
    return base64.b64decode(text) or secret.encode()


def _is_time(text: bytes) -> bool:
    return 1 <= len(text) <= 12 and not text.strip(b"0123456789")


def _is_id(text: bytes) -> bool:
    return 1 <= len(text) <= 128 and text.isascii() and text.replace(b"-", b"").replace(b"_", b"0").isalnum()


def _fresh(at: bytes) -> bool:
    return NOW - 300 <= int(at) <= NOW + 300


def _beyond_caps(case: Case) -> bool:
    """True where not all of it may be looked at, or a bare `t` makes the time ambiguous."""
    lines = [(name.lower(), value) for name, value in case.headers]
    count = {name: sum(1 for each, _ in lines if each == name) for name in (b"webhook-id", b"webhook-timestamp")}
    entries = sum(value.count(b"v1,") for name, value in lines if name == b"webhook-signature")
    plain = [value for name, value in lines if name in {each.lower() for each in PLAIN}]
    ambiguous = any(piece.strip(b" \t") == b"t" for value in plain for piece in value.split(b","))
    most = entries * count[b"webhook-id"] * count[b"webhook-timestamp"]
    return ambiguous or most + sum(1 + value.count(b"v1=") for value in plain) > 10 or len(case.secrets) > 5


def _ours(case: Case) -> tuple[str, str | None]:
    try:
        found = signatures.verify(case.headers, case.body, secrets=case.secrets, now=NOW)
    except (SignatureInvalid, SignatureMissing, SignatureStale) as refusal:
        return refusal.code, None
    return f"accepted {found.scheme}", found.webhook_id


def _theirs(case: Case) -> tuple[str, str | None]:
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in case.headers]
    try:
        found = _webhooks.verify(headers, case.body, [each.secret for each in case.secrets], now=NOW)
    except (InvalidSignature, StaleSignature) as refusal:
        return refusal.code, None
    return f"accepted {found.scheme}", found.webhook_id


def _signed(draw: Draw, body: bytes, secret: str) -> list[tuple[bytes, bytes]]:
    """Headers of one scheme over this body, in all the spellings of their parts."""
    at = draw.choice(ODD_TIMES) if draw.once_in(5) else draw.choice(TIMES)
    scheme = draw.below(3)
    if scheme == 2:
        webhook_id = draw.choice(IDS) if draw.once_in(4) else b"msg_1"
        mac = hmac.digest(_standard_key(secret), _claimed(draw, webhook_id + b"." + at + b".") + body, "sha256")
        value = b"v1," + base64.b64encode(mac)
        if draw.once_in(12):  # other bits beyond the end, which decode to the same bytes
            value = value[:-2] + bytes([value[-2] + 1]) + b"="
        around = draw.choice((b"%b", b"%b", b"v1a,AAAA %b", b"%b v2,x", b"%b %b", b"%b\t%b", b"%b,%b", b"v1,%b"))
        lines = [(b"webhook-id", webhook_id), (b"webhook-timestamp", at)]
        return [*lines, (b"webhook-signature", around.replace(b"%b", value))]
    name = draw.choice(PLAIN)
    if scheme == 0:
        form = draw.choice((b"%b", b"sha256=%b", b"SHA256=%b", b"sha256= %b", b" %b ", b"%b,%b", b"sha256=sha256=%b"))
        return [(name, form.replace(b"%b", _hex(draw, secret, body)))]
    forms = (
        b"t=%t,v1=%b",
        b"v1=%b,t=%t",
        b"t=%t, v1=%b",
        b"t=%t,v1=%b,v1=%b",
        b"t=%t,v0=%b",
        b"T=%t,v1=%b",
        b"t=%t,V1=%b",
        b"t=%t,t=%t,v1=%b",
        b"t=1,t=%t,v1=%b",
        b"t=%t;v1=%b",
        b"t=%t,v1=%b,x=sha256=1",
        b"t=%t,t,v1=%b",
        b",t=%t,,v1=%b,",
        b"t=%t,v1=zz,v1=%b",
    )
    form = draw.choice(forms) if draw.once_in(2) else forms[0]
    return [(name, form.replace(b"%t", at).replace(b"%b", _hex(draw, secret, _claimed(draw, at + b".") + body)))]


def _claimed(draw: Draw, prefix: bytes) -> bytes:
    """What is signed before the body: what is claimed, now and then something else."""
    return draw.choice((b"", b"%d." % NOW, prefix[1:], prefix + b".")) if draw.once_in(8) else prefix


def _hex(draw: Draw, secret: str, signed: bytes) -> bytes:
    digits = hmac.digest(secret.encode(), signed, "sha256").hex().encode()
    return draw.choice((digits, digits, digits.upper(), digits[:-1], digits + b"0", digits[:32], digits.title()))


def _disturb(draw: Draw, headers: list[tuple[bytes, bytes]]) -> None:
    at = draw.below(len(headers))
    name, value = headers[at]
    match draw.below(9):
        case 6:
            headers[at] = (name, draw.choice((b" ", b"\t", b"\n", b"\x0b", b"\xa0", b"\x85")) + value)
        case 0:
            headers[at] = (draw.mutated(name, 1), value)
        case 1 if len(headers) > 1:
            headers.pop(at)
        case 2:
            headers.insert(0, (name, value))
        case 3:
            headers.append((name, draw.mutated(value)))
        case 4:
            headers[at] = (name.upper(), value)
        case 5:
            headers[at] = (name, draw.choice((b"", b" ", b"\t", b",", b"=", b"v1,", b"t=", b"sha256=")))
        case _:
            headers[at] = (name, draw.mutated(value))
