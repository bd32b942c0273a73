"""Texts that prove or hide something: keys, sealed secrets, settings, cursors, ids; only what was made opens one."""

import base64
import binascii
import hashlib
import hmac
import json
import re
import zlib
from datetime import UTC
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from holdshort import _callbacks
from holdshort._pauses import Key

from controlplane import settings
from controlplane.domain import ids, keys, webhook_secrets
from controlplane.domain.errors import FieldFault
from controlplane.domain.vault import MasterKey, SecretUnreadable, Vault
from controlplane.edge import paging
from controlplane.http import events
from controlplane.settings import SettingsFault
from tests.fuzz.draw import Draw
from tests.fuzz.outcomes import Disagreement, FalseAccept

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
OURS = [keys.mint(bytes([seed]) * keys.ENTROPY_BYTES) for seed in (0, 7, 255)]
MASTER = [MasterKey(f"key{n}", bytes([n]) * 32) for n in (1, 2, 3)]
VAULT = Vault(MASTER[:2])
SECRET = "a-secret-that-is-kept"
SEALED = [Vault([key]).seal(SECRET, "apr_1", bytes([key.key[0]]) * 12) for key in MASTER]
CANARY = "canary-9f2b7c"
PAUSED = Key("run-1", "q-1", 1)
PAUSE_SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="

_SETTINGS: dict[str, tuple[str, ...]] = {
    "DATABASE_URL": (
        f"postgresql://u:{CANARY}@host:5432/name",
        f"postgresql://u:{CANARY}@[::1]/n?sslmode=require",
        "x",
    ),
    "POOL_SIZE": ("10", "0", "1_0", "１"),  # noqa: RUF001
    "WEBHOOK_SECRETS": (f"desk:{CANARY}-and-more,other:{CANARY}-else", f"{CANARY}=", "desk:", ",", "whsec_"),
    "CALLBACK_ALLOW": ("10.1.0.0/16:8001,agent", "::/0", "http://x", "[::1"),
    "DANGEROUS_CALLBACK_ALLOW": ("on", "off", "perhaps"),
    "DEFAULT_EXPIRES_HOURS": ("72", "0.5", "1e9", "nan", "-1"),
    "MASTER_KEYS": (base64.b64encode(bytes(32)).decode(), f"{CANARY}", "é", ",", "AA=="),
    "BOOTSTRAP_ADMIN_KEY": (OURS[0][1], f"hs_{CANARY}", "hs_"),
    "AUDIT_HEADS": ("/var/heads", "https://x.example/heads", "relative", "http://[", "http://a:b@c/"),
    "PUBLIC_URL": ("https://x.example", "http://[::1]:8000/", "http://[::1", "http://x:99999", "http://x?y", "//x"),
    "HOME": ("/var/lib/x", "~", "~nobody-of-this-name/x", "relative", "/a\x00b"),
    "LOG_LEVEL": ("info", "INFO", "loud"),
    "LISTEN": ("on", "off", ""),
    "MAX_WAITS": ("0", "20000", "99999999999"),
    "TRUSTED_PROXIES": ("10.0.0.0/8", "127.0.0.1,::1", "10.0.0.1/8", "proxy", "::/0"),
}
_SECRET_SETTINGS = ("WEBHOOK_SECRETS", "MASTER_KEYS", "BOOTSTRAP_ADMIN_KEY", "DATABASE_URL")
_CURSORS = tuple(
    base64.urlsafe_b64encode(text.encode()).decode()
    for text in (
        '["2026-01-01T00:00:00Z","apr_1"]',
        '["2026-01-01T00:00:00+23:59","apr_1"]',
        '["9999-12-31T23:59:59-23:59","apr_1"]',
        '["0001-01-01T00:00:00+14:00","apr_1"]',
        '["2026-01-01T00:00:00","apr_1"]',
        '["2026-01-01T00:00:00Z","\\u0000"]',
        '["2026-01-01T00:00:00Z","\\ud800"]',
        '["2026-01-01T00:00:00Z"]',
        "[[[[",
        "12.34",
        "9223372036854775807.0",
        "9223372036854775808.-1",
        "1_0. 5",
        "\u0661.\u0662",
    )
)
_CALLBACK: dict[str, Any] = {
    "execution_id": "run-1",
    "approval_request_id": "q-1",
    "approval_id": "apr_1",
    "round": 1,
    "decision": "approved",
    "feedback": "fine",
}


def try_key(data: bytes) -> str:
    """A key as sent: only one of the right form and checksum is one."""
    draw = Draw(data)
    key_id, shown, _ = draw.choice(OURS)
    if draw.once_in(4):  # the right form, and a secret that was guessed
        shown = keys.secret_for(key_id, bytes([draw.byte()]) * keys.ENTROPY_BYTES)[0]
    text = draw.mutated(shown.encode(), 2).decode("utf-8", "surrogateescape")
    return judge_key(draw.rest().decode("latin-1") if draw.once_in(16) else text)


def try_vault(data: bytes) -> str:
    """A sealed secret: it opens unchanged, for its owner, under a key that is there, or not at all."""
    draw = Draw(data)
    text = draw.mutated(draw.choice(SEALED).encode(), 2).decode("utf-8", "surrogateescape")
    return judge_sealed(text, draw.choice(("apr_1", "apr_1", "apr_2", "")))


def try_settings(data: bytes) -> str:
    """An environment: settings or every fault, and no secret in what is said of it."""
    draw = Draw(data)
    names = draw.several(tuple(_SETTINGS), 6)
    environ = {f"HOLDSHORT_{name}": _setting(draw, name) for name in names}
    return judge_settings(environ, {f"HOLDSHORT_{name}" for name in _SECRET_SETTINGS})


def try_webhook_secrets(data: bytes) -> str:
    """A setting of webhook secrets: each with its sender, none empty, none shown."""
    draw = Draw(data)
    text = draw.mutated(draw.choice(_SETTINGS["WEBHOOK_SECRETS"]).encode(), 3).decode("utf-8", "surrogateescape")
    return judge_webhook_secrets(text)


def try_cursor(data: bytes) -> str:
    """A place in a list or in the stream, as a caller sends it."""
    draw = Draw(data)
    text = draw.choice(_CURSORS)
    if draw.below(3):
        text = base64.urlsafe_b64encode(draw.mutated(base64.urlsafe_b64decode(text), 2)).decode()
    return judge_cursor(draw.mutated(text.encode(), 1).decode("utf-8", "replace"))


def try_id(data: bytes) -> str:
    """An id that a caller chose."""
    draw = Draw(data)
    known = draw.choice((b"run-1", b"apr_1", b"a" * 128, b"a" * 256, b" ", b"\xc2\xa0", b"q\xe2\x80\xa81"))
    return judge_id(draw.mutated(known, 2).decode("utf-8", "surrogateescape"))


def try_callback(data: bytes) -> str:
    """What is sent to an agent: a pause ends only for a signed answer, and with what that says."""
    draw = Draw(data)
    said = {**_CALLBACK, "decision": draw.choice(("approved", "rejected", "withdrawn"))}
    if draw.once_in(4):
        said["decision"], said["round"] = (
            draw.choice(("Approved", "yes", "", None)),
            draw.choice((1, 2, True, 1.0, "1")),
        )
    body = draw.mutated(json.dumps(said).encode(), 2 if draw.once_in(2) else 0)
    signed = draw.mutated(body, 1) if draw.once_in(4) else body
    at = draw.choice(("1790000000", "0", "+1", "\u0661"))
    webhook_id = draw.choice(("msg_1", "", "a.b", "é"))
    mac = hmac.digest(base64.b64decode(PAUSE_SECRET[6:]), f"{webhook_id}.{at}.".encode() + signed, "sha256")
    signature = draw.mutated(b"v1," + base64.b64encode(mac), 2 if draw.once_in(2) else 0).decode("latin-1")
    headers = {"webhook-id": webhook_id, "webhook-timestamp": at, "webhook-signature": signature}
    return judge_callback(headers, body)


def judge_key(text: str) -> str:
    found = keys.read(text)
    form = re.fullmatch(rf"hs_([{ALPHABET}]{{12}})_([{ALPHABET}]{{26}})([{ALPHABET}]{{6}})", text)
    right = form is not None and _spelled(zlib.crc32(f"{form[1]}_{form[2]}".encode()), 6) == form[3]
    if (found is not None) != right:
        raise (FalseAccept if found else Disagreement)(f"{text!r} is read as {found}")
    if found is None:
        return "no key"
    digests = {key_id: digest for key_id, _, digest in OURS}
    if form is None or (found.key_id, found.digest) != (form[1], hashlib.sha256(form[2].encode()).digest()):
        raise FalseAccept(f"{text!r} stands for another key")
    holds = keys.holds(found, [digests.get(found.key_id, b"")])
    if holds != (text in {shown for _, shown, _ in OURS}):
        raise FalseAccept(f"{text!r} was never given")
    return "ours" if holds else "a key of nobody"


def judge_sealed(text: str, owner: str) -> str:
    try:
        opened = VAULT.open(text, owner)
    except SecretUnreadable:
        if (text, owner) in {(SEALED[0], "apr_1"), (SEALED[1], "apr_1")}:
            raise Disagreement("what was sealed does not open") from None
        return "unreadable"
    if not text.startswith("hsv1."):
        return "never sealed"
    if opened != SECRET or owner != "apr_1" or not _opens(text, owner):
        raise FalseAccept(f"{text!r} opened for {owner!r}")
    return "opened"


def judge_settings(environ: dict[str, str], secret: set[str]) -> str:
    try:
        loaded = settings.load(environ)
    except SettingsFault as fault:
        told, outcome = str(fault), "faults"
        if not fault.faults or any(not line.startswith("HOLDSHORT_") for line in fault.faults):
            raise Disagreement(f"a fault that names no setting: {fault.faults}") from None
    else:
        told, outcome = repr(loaded), "loaded"
    if CANARY in told and any(CANARY in environ.get(name, "") for name in secret):
        raise FalseAccept(f"a secret is told: {told}")
    return outcome


def judge_webhook_secrets(text: str) -> str:
    try:
        found = webhook_secrets.parse(text)
    except FieldFault as fault:
        if CANARY in str(fault):
            raise FalseAccept("a secret is told") from None
        return "refused"
    expected = [] if text == "" else [_sender(entry.strip()) for entry in text.split(",")]
    if [(each.sender, each.secret) for each in found] != expected:
        raise FalseAccept(f"{text!r} is read as {[(each.sender, each.secret) for each in found]}")
    shown = CANARY in repr(found) and not any(CANARY in each.sender for each in found)
    if shown or any(not each.secret or each.secret == "whsec_" for each in found):
        raise FalseAccept("an empty secret, or one that is shown")
    return "read"


def judge_cursor(text: str) -> str:
    said = []
    try:
        place = paging.after(text)
    except FieldFault:
        said.append("no place in a list")
    else:
        if place is None:
            raise Disagreement("a cursor that is none")
        place.at.astimezone(UTC)
        place.id.encode()
        again = paging.after(paging.cursor(place.at, place.id))
        if again != place or "\x00" in place.id:
            raise FalseAccept(f"{place} cannot be kept")
        said.append("a place in a list")
    try:
        position = events._position(text)
    except FieldFault:
        said.append("none in the stream")
    else:
        if not 0 <= int(position.xid) < 2**63 or not 0 <= position.seq < 2**63:
            raise FalseAccept(f"{position} is no place that the database has")
        said.append("one in the stream")
    return ", ".join(said)


def judge_id(text: str) -> str:
    plain = 1 <= len(text) <= 128 and all(char.isascii() and (char.isalnum() or char in "._~:-") for char in text)
    plain = plain and bool(text.strip("."))
    hidden = any(ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029" for char in text)
    chosen = 1 <= len(text) <= 256 and not hidden and bool(text.strip()) and not text.startswith("apr_")
    said = []
    for check, right in ((ids.check_name, plain), (ids.check_request_id, chosen)):
        try:
            check("field", text)
            taken = True
        except FieldFault:
            taken = False
        if taken != right:
            raise (FalseAccept if taken else Disagreement)(f"{text!r} by {check.__name__}")
        said.append("taken" if taken else "refused")
    return " and ".join(said)


class _Waiting:
    """Stands in for an agent's pauses: one is waited for."""

    def __init__(self) -> None:
        self.ended: list[Any] = []

    def secret(self, key: Key) -> str | None:
        return PAUSE_SECRET if key == PAUSED else None

    def resolve(self, result: Any) -> bool:
        self.ended.append(result)
        return True


def judge_callback(headers: dict[str, str], body: bytes) -> str:
    waiting = _Waiting()
    status, said = _callbacks.receive(waiting, headers, body)  # type: ignore[arg-type]
    if status not in {200, 400, 401}:
        raise Disagreement(f"status {status}")
    if not waiting.ended:
        return str(said.get("error", "nobody waits"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mac = base64.b64encode(hmac.digest(base64.b64decode(PAUSE_SECRET[6:]), signed, "sha256")).decode()
    if f"v1,{mac}" not in headers["webhook-signature"].split():
        raise FalseAccept("a pause ended that nobody signed for")
    told = json.loads(body.decode(errors="replace"))
    (result,) = waiting.ended
    if result.decision != told["decision"] or result.decision not in {"approved", "rejected", "withdrawn"}:
        raise FalseAccept(f"a pause ended with {result.decision}, told was {told['decision']}")
    return f"ended, {'approved' if result.approved else 'and not approved'}"


def _setting(draw: Draw, name: str) -> str:
    value = draw.choice(_SETTINGS[name])
    return draw.mutated(value.encode(), 1 if draw.once_in(2) else 0).decode("utf-8", "surrogateescape")


def _opens(text: str, owner: str) -> bool:
    """The other reading of a sealed text: the cipher itself agrees."""
    name, _, body = text[5:].partition(".")
    try:
        raw = base64.b64decode(body)
    except (binascii.Error, ValueError):
        return False
    key = next((each.key for each in MASTER[:2] if each.name == name), None)
    return key is not None and AESGCM(key).decrypt(raw[:12], raw[12:], owner.encode()) == SECRET.encode()


def _sender(entry: str) -> tuple[str, str]:
    name, colon, secret = entry.partition(":")
    named = colon and 1 <= len(name) <= 32 and name[0] in "abcdefghijklmnopqrstuvwxyz"
    if named and not name.strip("abcdefghijklmnopqrstuvwxyz0123456789-"):
        return name, secret.strip()
    return "", entry


def _spelled(number: int, length: int) -> str:
    return "".join(ALPHABET[number // 32**place % 32] for place in range(length))
