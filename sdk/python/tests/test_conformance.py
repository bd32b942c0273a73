"""The vectors that every implementation runs."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from holdshort import (
    ApprovalResult,
    BadRequest,
    Client,
    Form,
    InvalidAnswer,
    InvalidField,
    Question,
    UnreadableAnswer,
    ValuesInvalid,
    Verdict,
    _routes,
)
from holdshort._forms import Sought
from holdshort._seals import Lock, seal
from holdshort.testing import ControlPlane
from holdshort.webhooks import InvalidSignature, sign, verify
from msgspec.structs import replace

Ran = Callable[[str], None]
QUESTION = Question(approval_request_id="q")
VECTORS = Path(__file__).parents[2] / "conformance"
SIGNATURES = json.loads((VECTORS / "signatures.json").read_text())["cases"]
DECISIONS = json.loads((VECTORS / "decisions.json").read_text())


@pytest.mark.parametrize("case", SIGNATURES, ids=[case["name"] for case in SIGNATURES])
def test_signatures(case: dict[str, Any]) -> None:
    body = base64.b64decode(case["body_base64"])
    if case["outcome"] == "valid":
        verify(case["headers"], body, case["secrets"], now=case["now"])
        return
    with pytest.raises(InvalidSignature) as refused:
        verify(case["headers"], body, case["secrets"], now=case["now"])
    assert refused.value.code == case["outcome"]


def test_all_signatures_ran(ran: Ran) -> None:
    ran(f"{len(SIGNATURES)} signatures")
    assert len(SIGNATURES) == 56


def test_decision_words(plane: ControlPlane, ran: Ran) -> None:
    """What a person's client may say to the testing control plane; `expired` is nobody's word."""
    refused = [*DECISIONS["refused"], *(w for w, means in DECISIONS["accepted"].items() if means == "expired")]
    accepted = {word: means for word, means in DECISIONS["accepted"].items() if means != "expired"}
    assert (len(DECISIONS["accepted"]), len(DECISIONS["refused"])) == (44, 26)
    ran(f"{len(accepted)} + {len(refused)} decision words")
    with Client(transport=plane.blocking_transport) as client:
        for number, (word, means) in enumerate([*accepted.items(), *((word, None) for word in refused)]):
            client.create_execution("n", f"run-{number}")
            asked = client.request_approval(f"run-{number}", Question(approval_request_id="x"))
            if means is None:
                with pytest.raises((BadRequest, TypeError)):
                    client.decide(asked.approval_id, Verdict(decision=word))
                assert client.get_approval_status(f"run-{number}").status == "pending"
            else:
                assert client.decide(asked.approval_id, Verdict(decision=word)).decision == means


SEALING = json.loads((VECTORS / "feedback_sealing.json").read_text())


@pytest.mark.parametrize("case", SEALING["opens"], ids=[case["unique_id"] for case in SEALING["opens"]])
def test_sealed_answers_open(case: dict[str, str]) -> None:
    lock = Lock(base64.b64decode(SEALING["private_key"]))
    assert lock.public_key == SEALING["public_key"]
    assert lock.open(case["unique_id"], case["enc"], case["ct"]) == case["answer"]
    assert (
        lock.open(case["unique_id"], *seal(SEALING["public_key"], case["unique_id"], case["answer"])) == case["answer"]
    )


@pytest.mark.parametrize("case", SEALING["refused"], ids=[case["name"] for case in SEALING["refused"]])
def test_sealed_answers_that_do_not_open(case: dict[str, str]) -> None:
    with pytest.raises(UnreadableAnswer):
        Lock(base64.b64decode(SEALING["private_key"])).open(case["unique_id"], case["enc"], case["ct"])


def test_all_seals_ran(ran: Ran) -> None:
    ran(f"{len(SEALING['opens'])} + {len(SEALING['refused'])} seals")
    assert (len(SEALING["opens"]), len(SEALING["refused"])) == (5, 3)


def test_hostile_seals_are_only_unreadable() -> None:
    lock = Lock()
    for enc, ct in [("", ""), ("A", "A"), ("\u00e9", "AAAA"), ("AAAA" * 20, "AAAA"), ("A" * 43 + "=", "A" * 64)]:
        with pytest.raises(UnreadableAnswer):
            lock.open("otp-1", enc, ct)
    enc, ct = seal(lock.public_key, "otp-1", "482913")
    lock.forget()
    with pytest.raises(UnreadableAnswer):
        lock.open("otp-1", enc, ct)


FORMS = json.loads((VECTORS / "forms.json").read_text())["cases"]


@pytest.mark.parametrize("case", FORMS, ids=[case["name"] for case in FORMS])
def test_forms_and_their_values(plane: ControlPlane, case: dict[str, Any]) -> None:
    """What the testing control plane takes, and what the agent's own check makes of the same values."""
    with Client(transport=plane.blocking_transport) as client:
        client.create_execution("n", "run-1")
        sent = {"approval_request_id": "q", **{name: case[name] for name in ("form", "payload") if name in case}}
        asking = replace(_routes.request_approval("run-1", QUESTION), body=json.dumps(sent).encode())
        if case.get("code") == "invalid_field":
            with pytest.raises(InvalidField) as refused:
                client.send(asking)
            assert refused.value.code == "invalid_field"
            return
        asked = client.send(asking)
        verdict = Verdict(decision="approved", values=case.get("values"))
        if "code" in case:
            with pytest.raises(InvalidAnswer):
                client.decide(asked.approval_id, verdict)
            data = {"values": case["values"]} if "values" in case else None
        else:
            client.decide(asked.approval_id, verdict)
            response = client.get_approval_status("run-1").response
            assert response is not None
            data = response.data
            assert data["values"] == case["accepted"]
            assert data.get("original") == (case["payload"] if case["form"].get("editable") else None)
    held_by_the_agent(case, data)


def held_by_the_agent(case: dict[str, Any], data: Any) -> None:
    sought = Sought(msgspec.convert(case["form"], Form))
    names = {"execution_id": "run-1", "approval_request_id": "q", "approval_id": "apr_1", "round": 1}
    result = ApprovalResult(decision="approved", feedback="", data=data, **names)
    if "code" in case:
        with pytest.raises(ValuesInvalid):
            sought.fitting(result)
        return
    assert sought.fitting(result).values == case["accepted"]


def test_all_forms_ran(ran: Ran) -> None:
    ran(f"{len(FORMS)} forms")
    assert len(FORMS) == 78


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
