"""The server agrees with every vector in sdk/conformance that it has a part in."""

import base64
import json
from typing import Any

from controlplane.domain import digests, forms, signatures, webhook_secrets
from controlplane.domain.decisions import DecisionReceived, canonical
from controlplane.domain.errors import FieldFault, HoldshortError, InvalidDecision
from controlplane.domain.sealing import Opener, SealBroken, Sealed
from controlplane.domain.webhook_secrets import WebhookSecret
from controlplane.http import inbound
from tests.contract.vectors import Ledger, load


def differs(found: object, expected: object) -> str | None:
    return None if found == expected else f"{found!r} instead of {expected!r}"


def signature_outcome(case: dict[str, Any]) -> str:
    headers = [(name.encode(), value.encode()) for name, value in case["headers"].items()]
    secrets = [WebhookSecret("", text) for text in case["secrets"]]
    try:
        signatures.verify(headers, base64.b64decode(case["body_base64"]), secrets=secrets, now=case["now"])
    except HoldshortError as error:
        return error.code.removeprefix("webhook_")
    return "valid"


def body_outcome(body: str) -> dict[str, Any]:
    try:
        found = inbound.parse(body.encode())
    except HoldshortError as error:
        return {"error": error.code}
    if not isinstance(found, DecisionReceived):
        return {"status": "ignored", "type": found.type}
    return {
        "request_id": found.request_id,
        "decision": found.decision,
        "feedback": found.feedback,
        "response": None if found.response is None else json.loads(found.response),
        "execution_id": found.execution_id,
    }


def setting_outcome(value: str) -> object:
    try:
        return [[each.sender, each.secret] for each in webhook_secrets.parse(value)]
    except FieldFault as fault:
        return fault.rule


def word_outcome(word: object) -> str:
    try:
        return canonical(word)
    except InvalidDecision as error:
        return error.code


def test_every_signature_has_its_outcome(ledger: Ledger) -> None:
    vectors = load("signatures")
    assert vectors["tolerance_s"] == signatures.TOLERANCE_SECONDS
    results = {case["name"]: differs(signature_outcome(case), case["outcome"]) for case in vectors["cases"]}
    ledger.settle("signatures", results)


def sealing_outcome(case: dict[str, Any], opener: Opener) -> str | None:
    try:
        return opener.open(Sealed(base64.b64decode(case["enc"]), base64.b64decode(case["ct"])), case["unique_id"])
    except SealBroken:
        return None


def test_every_sealed_answer_opens_as_what_it_is_or_not_at_all(ledger: Ledger) -> None:
    vectors = load("feedback_sealing")
    opener = Opener(base64.b64decode(vectors["private_key"]))
    assert base64.b64encode(opener.public_key).decode() == vectors["public_key"]
    results = {
        case.get("name", case["unique_id"]): differs(sealing_outcome(case, opener), case.get("answer"))
        for case in vectors["opens"] + vectors["refused"]
    }
    ledger.settle("sealed answers", results)


def form_outcome(case: dict[str, Any]) -> object:
    payload, values = (json.dumps(case[name]).encode() if name in case else None for name in ("payload", "values"))
    try:
        form = forms.read(json.dumps(case["form"]).encode())
        forms.check_payload(form, payload)
        return json.loads(forms.values_of(form, values, payload))
    except HoldshortError as error:
        return error.code


def test_every_form_takes_what_answers_it(ledger: Ledger) -> None:
    cases = load("forms")["cases"]
    expected = {case["name"]: case.get("code", case.get("accepted")) for case in cases}
    ledger.settle("forms", {case["name"]: differs(form_outcome(case), expected[case["name"]]) for case in cases})


def test_every_decision_word_has_its_meaning(ledger: Ledger) -> None:
    accepted = load("decisions")["accepted"]
    ledger.settle(
        "accepted decision words", {word: differs(word_outcome(word), meant) for word, meant in accepted.items()}
    )


def test_no_other_word_decides(ledger: Ledger) -> None:
    refused = load("decisions")["refused"]
    ledger.settle(
        "refused decision words",
        {f"{index} {word!r}": differs(word_outcome(word), "invalid_decision") for index, word in enumerate(refused)},
    )


def test_every_body_is_read_alike(ledger: Ledger) -> None:
    cases = load("webhook_bodies")["cases"]
    ledger.settle("bodies", {case["name"]: differs(body_outcome(case["body"]), case["outcome"]) for case in cases})


def test_every_setting_gives_its_secrets(ledger: Ledger) -> None:
    vectors = load("secret_settings")
    assert vectors["variable"] == webhook_secrets.SETTING
    ledger.settle(
        "settings",
        {
            case["value"]: differs(setting_outcome(case["value"]), case.get("secrets", case.get("error")))
            for case in vectors["cases"]
        },
    )


def test_every_payload_has_its_digest(ledger: Ledger) -> None:
    results = {}
    for case in load("payload_digests")["cases"]:
        raw = case["raw"].encode()
        found = (digests.canonical(raw).decode(), digests.payload_digest(raw))
        results[case["raw"]] = differs(found, (case["canonical"], case["sha256"]))
    ledger.settle("digests", results)
