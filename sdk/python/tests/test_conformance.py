"""Whatever is signed, read, digested and sealed here agrees with every implementation."""

import base64
import hmac
import json
from hashlib import sha256
from typing import Any

import pytest
from holdshort import UnreadableAnswer
from holdshort._digests import canonical
from holdshort._seals import Lock, seal
from holdshort.webhooks import (
    BadRequest,
    IgnoredEvent,
    InvalidSignature,
    decision_word,
    parse_secrets,
    payload_digest,
    read_decision,
    sign,
    verify,
)

from sdk.python.tests.vectors import Ledger, load


def signature_outcome(case: dict[str, Any]) -> str:
    try:
        verify(case["headers"], base64.b64decode(case["body_base64"]), case["secrets"], now=case["now"])
    except InvalidSignature as error:
        return error.code
    return "valid"


def test_every_signature_has_its_outcome(ledger: Ledger) -> None:
    cases = load("signatures")["cases"]
    ledger.settle("signatures", {case["name"]: (signature_outcome(case), case["outcome"]) for case in cases})


def meaning(word: object) -> str:
    try:
        return decision_word(word)
    except BadRequest as error:
        return error.code


def test_every_word_means_one_decision_or_none(ledger: Ledger) -> None:
    words = load("decisions")
    accepted = {f"{word!r}": (meaning(word), means) for word, means in words["accepted"].items()}
    refused = {f"not {word!r}": (meaning(word), "invalid_decision") for word in words["refused"]}
    assert (len(accepted), len(refused)) == (44, 26)
    ledger.settle("decisions", accepted | refused)


def body_outcome(body: str) -> dict[str, Any]:
    try:
        found = read_decision(body.encode())
    except BadRequest as error:
        return {"error": error.code}
    if isinstance(found, IgnoredEvent):
        return {"status": "ignored", "type": found.type}
    names = ("request_id", "decision", "feedback", "response", "execution_id")
    return {name: getattr(found, name) for name in names}


def test_every_body_is_read_alike(ledger: Ledger) -> None:
    cases = load("webhook_bodies")["cases"]
    ledger.settle("webhook_bodies", {case["name"]: (body_outcome(case["body"]), case["outcome"]) for case in cases})


def setting_outcome(value: str) -> object:
    try:
        return [[each.sender, each.secret] for each in parse_secrets(value)]
    except ValueError as fault:
        return str(fault)


def test_every_setting_gives_its_secrets(ledger: Ledger) -> None:
    cases = load("secret_settings")["cases"]
    expected = {case["value"]: case.get("secrets", case.get("error")) for case in cases}
    ledger.settle("secret_settings", {value: (setting_outcome(value), means) for value, means in expected.items()})


def test_every_payload_has_its_digest(ledger: Ledger) -> None:
    found = {}
    for case in load("payload_digests")["cases"]:
        raw = case["raw"].encode()
        found[case["raw"]] = ((canonical(raw).decode(), payload_digest(raw)), (case["canonical"], case["sha256"]))
    ledger.settle("payload_digests", found)


def opened(lock: Lock, case: dict[str, str]) -> str | None:
    try:
        return lock.open(case["unique_id"], case["enc"], case["ct"])
    except UnreadableAnswer:
        return None


def test_every_sealed_answer_opens_as_what_it_is_or_not_at_all(ledger: Ledger) -> None:
    vectors = load("feedback_sealing")
    lock = Lock(base64.b64decode(vectors["private_key"]))
    assert lock.public_key == vectors["public_key"]
    for case in vectors["opens"]:
        anew = seal(lock.public_key, case["unique_id"], case["answer"])
        assert lock.open(case["unique_id"], *anew) == case["answer"]
    cases = [*vectors["opens"], *vectors["refused"]]
    found = {case.get("name", case["unique_id"]): (opened(lock, case), case.get("answer")) for case in cases}
    ledger.settle("feedback_sealing", found)


def test_hostile_seals_are_only_unreadable() -> None:
    lock = Lock()
    for enc, ct in [("", ""), ("A", "A"), ("\u00e9", "AAAA"), ("AAAA" * 20, "AAAA"), ("A" * 43 + "=", "A" * 64)]:
        with pytest.raises(UnreadableAnswer):
            lock.open("otp-1", enc, ct)
    enc, ct = seal(lock.public_key, "otp-1", "482913")
    lock.forget()
    with pytest.raises(UnreadableAnswer):
        lock.open("otp-1", enc, ct)


@pytest.mark.parametrize("scheme", ["body", "timestamped", "standard"])
@pytest.mark.parametrize("secret", ["plain secret text", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_what_is_signed_here_verifies_here(scheme: Any, secret: str) -> None:
    body = b'{"decision":"approved"}'
    headers = sign(secret, body, scheme=scheme, now=1000, webhook_id="msg_1")
    proven = verify(headers, body, ["another", secret], now=1300)
    assert (proven.scheme, proven.webhook_id) == (scheme, "msg_1" if scheme == "standard" else None)
    for changed in (body + b" ", body.replace(b"approved", b"rejected"), b""):
        with pytest.raises(InvalidSignature):
            verify(headers, changed, [secret], now=1000)


@pytest.mark.parametrize("secrets", [[], [""], ["", ""]])
def test_an_empty_secret_proves_nothing(secrets: list[str]) -> None:
    signed = {"X-Webhook-Signature": hmac.new(b"", b"x", sha256).hexdigest()}
    with pytest.raises(InvalidSignature) as refused:
        verify(signed, b"x", secrets, now=1)
    assert refused.value.code == "not_configured"
    with pytest.raises(InvalidSignature):
        verify(signed, b"x", [*secrets, "another"], now=1)
    with pytest.raises(ValueError, match="secret"):
        sign("", b"x", scheme="body")


def test_hostile_headers_are_only_invalid() -> None:
    hostile = [
        "",
        "v1",
        "v1,",
        "\ud800",
        "é" * 99,
        "t=1,t=2,v1=" + "0" * 64,
        "t=" + "9" * 99 + ",v1=x",
        "=",
        ",,,",
        "\x00",
    ]
    for name in ("X-Webhook-Signature", "webhook-signature", "X-Hax-Signature"):
        for value in hostile:
            headers = [("webhook-id", "m"), ("webhook-timestamp", "1"), (name, value), (name, value)]
            with pytest.raises(InvalidSignature):
                verify(headers, b"x", ["secret"] * 9, now=1)


HOSTILE = [
    b"\xef\xbb\xbf{}",
    b"\xff",
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'"' + b"\\" * 99_999,
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":1e999}',
    b'{"a":1e-999}',
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a\\u0000":1}',
    b'{"\\ud800":1}',
    b'{"a":1,"\\u0061":2}',
    b'{"a":"\n"}',
    b"{'a':1}",
    b"{} {}",
    b"01",
]


@pytest.mark.parametrize("raw", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_json_is_only_refused(raw: bytes) -> None:
    for read in (read_decision, payload_digest):
        with pytest.raises(BadRequest) as refused:
            read(raw)
        assert refused.value.code == "invalid_body"


def test_nesting_is_counted_outside_of_texts() -> None:
    deep = b"[" * 64 + b"]" * 64
    assert len(payload_digest(deep)) == 64
    assert len(payload_digest(b'["' + b"[" * 99 + b'\\"' + b"{" * 99 + b'"]')) == 64
    with pytest.raises(BadRequest):
        payload_digest(b"[" + deep + b"]")


def test_a_value_beside_another_is_compared_as_it_was_written() -> None:
    def body(response: str, values: str) -> bytes:
        return f'{{"requestId":"r1","decision":"approved","response":{response},"values":{values}}}'.encode()

    same = read_decision(body('{"values":{"b":1,"a":2}}', '{"a":2,"b":1}'))
    assert not isinstance(same, IgnoredEvent)
    assert same.response == {"values": {"b": 1, "a": 2}}
    for response, values in [('{"values":{"a":1.0}}', '{"a":1.00}'), ("[]", "1"), ('{"values":null}', "1")]:
        with pytest.raises(BadRequest) as refused:
            read_decision(body(response, values))
        assert refused.value.code == "invalid_body"


def test_neither_a_decision_nor_an_event_counts_as_true() -> None:
    rejected = read_decision(b'{"requestId":"r1","decision":"reject"}')
    ignored = read_decision(json.dumps({"type": "request.opened", "data": {"id": "r1"}}).encode())
    for each in (rejected, ignored):
        assert not each.approved
        with pytest.raises(TypeError):
            bool(each)


def test_no_secret_is_shown() -> None:
    (kept,) = parse_secrets("legal:plain-secret-16chars")
    assert "plain-secret" not in repr(kept)
    with pytest.raises(ValueError, match="empty secret") as refused:
        parse_secrets("good-secret-16-chars,legal:")
    assert "good" not in str(refused.value)
