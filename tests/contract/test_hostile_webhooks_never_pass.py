"""Seeded fuzz: no mutated header or body is ever accepted for what it is not, or raises anything but a refusal."""

import json
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from controlplane.domain.decisions import Decision, DecisionReceived, known
from controlplane.domain.errors import (
    DecisionConflict,
    DecisionMissing,
    HoldshortError,
    InvalidBody,
    InvalidDecision,
    RequestIdMissing,
    SignatureInvalid,
    SignatureMissing,
    SignatureStale,
)
from controlplane.domain.signatures import Verified, sign_hex, sign_standard, sign_timestamped, verify
from controlplane.domain.webhook_secrets import WebhookSecret
from controlplane.http import inbound
from tests.contract.hostile import a_body, mutated
from tests.contract.vectors import load
from tests.fuzz.reading import places

NOW = 1_790_000_000
SECRETS = (WebhookSecret("legal", "a-secret-of-21-letters"), WebhookSecret("review", "whsec_MDEyMzQ1Njc4OWFiY2RlZg=="))
QUICK, LONG = 20_000, 1_000_000
SIZES = [QUICK, pytest.param(LONG, marks=[pytest.mark.proof, pytest.mark.timeout(1200)])]
BODY = b'{"requestId":"r1","decision":"approved","feedback":"fine"}'

Headers = list[tuple[bytes, bytes]]


def signed() -> Iterator[tuple[Headers, str | None]]:
    """Honest header sets for BODY, fresh and stale, with the id that they prove."""
    for secret in SECRETS:
        mac = sign_hex(secret.secret, BODY).encode()
        yield [(b"X-Webhook-Signature", mac)], None
        yield [(b"X-Hub-Signature-256", b"sha256=" + mac)], None
        for at in (NOW, NOW - 301):
            yield [(b"X-Hax-Signature", sign_timestamped(secret.secret, BODY, timestamp=at).encode())], None
            value = sign_standard(secret.secret, BODY, webhook_id="msg_1", timestamp=at).encode()
            times = (b"webhook-timestamp", b"%d" % at)
            yield [(b"webhook-id", b"msg_1"), times, (b"webhook-signature", value)], "msg_1"


def mutated_headers(source: random.Random, headers: Headers) -> Headers:
    found = list(headers)
    index = source.randrange(len(found))
    name, value = found[index]
    match source.randrange(5):
        case 0:
            found[index] = (mutated(source, name), value)
        case 1:
            found.insert(index, (name, mutated(source, value)))
        case 2:
            found.pop(index)
        case _:
            found[index] = (name, mutated(source, value))
    return found


@pytest.mark.parametrize("count", SIZES)
def test_mutated_signatures_and_bodies_are_refused(count: int) -> None:
    source, honest, seen = random.Random(56), list(signed()), Counter[str]()
    for _ in range(count):
        headers, proved_id = source.choice(honest)
        body = mutated(source, BODY) if source.random() < 0.5 else BODY
        if source.random() < 0.7:
            headers = mutated_headers(source, headers)
        try:
            found = verify(headers, body, secrets=SECRETS, now=NOW)
        except (SignatureInvalid, SignatureMissing, SignatureStale) as refusal:
            seen[refusal.code if body == BODY else f"{refusal.code} of another body"] += 1
            continue
        seen["accepted"] += 1
        assert body == BODY
        assert isinstance(found, Verified)
        assert found.webhook_id in {None, proved_id}
    assert min(seen[kind] for kind in ("accepted", "invalid_signature", "missing_signature", "stale_signature")) > 100
    assert seen["stale_signature of another body"] == 0


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    assert len({name for name, _ in pairs}) == len(pairs), "a name twice was accepted"
    return dict(pairs)


def judge(raw: bytes) -> str:
    """Parse, and hold what was accepted against an independent reading of the same bytes."""
    try:
        found = inbound.parse(raw)
    except (DecisionConflict, DecisionMissing, InvalidBody, InvalidDecision, RequestIdMissing) as refusal:
        return refusal.code
    top = json.loads(raw.decode(), object_pairs_hook=once)
    words = {known(word) for word in places(top)} - {None}
    if not isinstance(found, DecisionReceived):
        assert not words
        return "ignored"
    assert words == {found.decision}
    assert found.request_id or found.approval_id
    assert "\x00" not in found.feedback
    if found.response is not None:
        holder = top if found.shape == "flat" else top["data"]
        assert json.loads(found.response) == holder["response"]
    return "approved" if found.decision is Decision.APPROVED else "other decision"


@pytest.mark.parametrize("count", SIZES)
def test_mutated_bodies_mean_what_they_say_or_are_refused(count: int) -> None:
    source, seen = random.Random(46), Counter[str]()
    bodies = [case["body"].encode() for case in load("webhook_bodies")["cases"] if len(case["body"]) < 1000]
    for _ in range(count):
        seen[judge(mutated(source, source.choice(bodies)))] += 1
    assert min(seen["approved"], seen["other decision"], seen["invalid_body"], seen["ignored"]) > 50


@pytest.mark.parametrize("count", SIZES)
def test_bodies_of_known_names_in_odd_places_mean_what_they_say_or_are_refused(count: int) -> None:
    source, seen = random.Random(26), Counter[str]()
    for _ in range(count):
        seen[judge(json.dumps(a_body(source)).encode())] += 1
    assert min(seen[kind] for kind in ("approved", "other decision", "ignored", "decision_conflict")) > 20


def test_random_bytes_are_a_bad_body() -> None:
    source = random.Random(1)
    for length in range(2000):
        with pytest.raises(HoldshortError) as caught:
            inbound.parse(source.randbytes(length % 64))
        assert caught.value.code == InvalidBody.code
