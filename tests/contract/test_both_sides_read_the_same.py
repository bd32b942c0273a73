"""The server's and the SDK's readers are written apart, and make the same of every body, payload, word and setting."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from holdshort import webhooks

from controlplane.domain import digests, webhook_secrets
from controlplane.domain.decisions import DecisionReceived, canonical
from controlplane.domain.errors import FieldFault, HoldshortError
from controlplane.http import inbound
from tests.contract.hostile import a_body, mutated
from tests.contract.vectors import load

QUICK, LONG = 5_000, 500_000
SIZES = [QUICK, pytest.param(LONG, marks=[pytest.mark.proof, pytest.mark.timeout(1200)])]
NAMES = ("request_id", "approval_id", "execution_id", "round", "decision", "feedback")


def ours(raw: bytes) -> Any:
    """What the server reads."""
    try:
        found = inbound.parse(raw)
    except HoldshortError as refusal:
        return refusal.code
    if not isinstance(found, DecisionReceived):
        return {"ignored": found.type}
    response = None if found.response is None else json.loads(found.response)
    return {**{name: getattr(found, name) for name in NAMES}, "response": response}


def theirs(raw: bytes) -> Any:
    """What the SDK reads."""
    try:
        found = webhooks.read_decision(raw)
    except webhooks.BadRequest as refusal:
        return refusal.code
    if isinstance(found, webhooks.IgnoredEvent):
        return {"ignored": found.type}
    return {name: getattr(found, name) for name in (*NAMES, "response")}


def agreed(raw: bytes) -> str:
    """What both read, in one word."""
    found = ours(raw)
    assert theirs(raw) == found, raw
    return found if isinstance(found, str) else "read"


@pytest.mark.parametrize("count", SIZES)
def test_they_read_alike_what_was_changed_on_its_way(count: int) -> None:
    source, seen = random.Random(46), Counter[str]()
    bodies = [case["body"].encode() for case in load("webhook_bodies")["cases"] if len(case["body"]) < 1000]
    for _ in range(count):
        seen[agreed(mutated(source, source.choice(bodies)))] += 1
    assert min(seen[kind] for kind in ("read", "invalid_body")) > 100


@pytest.mark.parametrize("count", SIZES)
def test_they_read_alike_known_names_in_odd_places(count: int) -> None:
    source, seen = random.Random(26), Counter[str]()
    for _ in range(count):
        body = a_body(source)
        if source.random() < 0.3:
            values = source.choice([{"a": 1}, {"a": 1.0}, [], "yes", False, None])
            body |= {"values": values, "response": source.choice([{"values": values}, {"values": 1}, {}, None])}
        seen[agreed(json.dumps(body).encode())] += 1
    assert min(seen[kind] for kind in ("read", "decision_conflict", "invalid_body", "request_id_missing")) > 20


@pytest.mark.parametrize("count", SIZES)
def test_they_digest_alike(count: int) -> None:
    source, seen = random.Random(16), Counter[str]()
    payloads = [case["raw"].encode() for case in load("payload_digests")["cases"]]
    for _ in range(count):
        raw = mutated(source, source.choice(payloads))
        found = digest(digests.payload_digest, raw)
        assert digest(webhooks.payload_digest, raw) == found, raw
        seen["refused" if found == "invalid_body" else "digested"] += 1
    assert min(seen.values()) > 100


def digest(maker: Any, raw: bytes) -> str:
    try:
        made: str = maker(raw)
    except (HoldshortError, webhooks.BadRequest) as refusal:
        return refusal.code
    return made


@pytest.mark.parametrize("number", ["1e308", "1e309", "-1e-400", "0e999", "1E-9", "9" * 309, "9" * 308, "-0.0"])
def test_they_draw_the_same_line_at_numbers(number: str) -> None:
    raw = f'{{"a":{number}}}'.encode()
    assert digest(webhooks.payload_digest, raw) == digest(digests.payload_digest, raw)


def test_they_know_the_same_words() -> None:
    words = load("decisions")
    for word in [*words["accepted"], *words["refused"], "\x0capprove\v", "\x1capprove", "approve\u212a", "\xa0approve"]:
        try:
            means = str(canonical(word))
        except HoldshortError as refusal:
            means = refusal.code
        try:
            found = str(webhooks.decision_word(word))
        except webhooks.BadRequest as refusal:
            found = refusal.code
        assert found == means, word


@pytest.mark.parametrize(
    "setting",
    ["a:b:c", "a-b:whsec_", "whsec_", "1a:secret", "a\n:secret", "x" * 40 + ":s", " a : b ", "a:\ud800", "a,,b", "é:b"],
)
def test_they_read_settings_alike(setting: str) -> None:
    try:
        means: Any = [(each.sender, each.secret) for each in webhook_secrets.parse(setting)]
    except FieldFault as fault:
        means = fault.rule
    try:
        found: Any = [(each.sender, each.secret) for each in webhooks.parse_secrets(setting)]
    except ValueError as fault:
        found = str(fault)
    assert found == means
