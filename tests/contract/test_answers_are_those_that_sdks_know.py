"""What the server answers and sends is what the vectors of errors, retries and callbacks hold SDKs to."""

import base64
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from holdshort._core import Reply, delay_after
from holdshort._refusals import _Table

from controlplane.domain import errors, signatures
from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.deliveries import callback_body
from controlplane.domain.executions import ExecutionStatus
from controlplane.edge.errors import RETRY_AFTER_SECONDS, STATUS, problem
from tests.contract.vectors import Ledger, load

LEAVES = {kind.code: kind for kind in STATUS}
BUSY = [kind for kind, status in STATUS.items() if status in {429, 503}]
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def real_cases() -> dict[str, dict[str, Any]]:
    """The cases of errors.json that are of a code, by it."""
    return {case["name"]: case for case in load("errors")["cases"] if re.fullmatch(r"[a-z_]+", case["name"])}


def error_answer(case: dict[str, Any]) -> dict[str, Any]:
    """What the server's own error of this code, with this sentence and these members, is answered as."""
    kind, said = LEAVES[case["name"]], case["expect"]
    fault = kind.__new__(kind)
    errors.HoldshortError.__init__(fault, said["says"], **said["details"])
    status, _, body = problem(fault)
    return {"status": status, **without_title(json.loads(body))}


def without_title(document: dict[str, Any]) -> dict[str, Any]:
    # Versions of Python name a few statuses differently.
    return {name: value for name, value in document.items() if name not in {"title", "request_id"}}


def test_every_code_of_the_table_is_answered_as_its_case_says(ledger: Ledger) -> None:
    cases = real_cases()
    assert cases.keys() == LEAVES.keys()
    found = {}
    for code, case in cases.items():
        expected = {"status": case["status"], **without_title(json.loads(case["body"]))}
        answer = error_answer(case)
        found[code] = None if answer == expected else f"{answer} instead of {expected}"
    ledger.settle("error answers", found)


def test_every_code_that_an_sdk_makes_an_error_of_its_own_of_is_the_servers_and_has_a_case() -> None:
    own = {**_Table.by_code, **_Table.ends}
    assert own.keys() <= LEAVES.keys()
    kinds = {code: case["expect"]["kind"] for code, case in real_cases().items()}
    assert {code: kinds[code] for code in own} == {code: kind.__name__ for code, kind in own.items()}


@pytest.mark.parametrize("kind", BUSY, ids=lambda kind: kind.code)
def test_every_429_and_503_says_when_to_try_again_as_sdks_read_it(kind: type[errors.HoldshortError]) -> None:
    status, headers, _ = problem(kind())
    if kind is errors.WebhookNotConfigured:
        assert "Retry-After" not in headers
        return
    assert re.fullmatch(r"[0-9]{1,4}", headers["Retry-After"])
    known = Reply(status, {name.lower(): value for name, value in headers.items()}, b"")
    assert delay_after(known, 1, 1) == RETRY_AFTER_SECONDS + 0.05


def test_the_seconds_of_a_limit_are_whole() -> None:
    _, headers, _ = problem(errors.TooManyFailures(retry_after_seconds=30))
    assert headers["Retry-After"] == "30"
    assert any(
        case["reply"] and re.fullmatch("[0-9]{1,4}", case["reply"]["headers"].get("retry-after", ""))
        for case in load("retries")["cases"]
    )


def signed_cases() -> Iterator[dict[str, Any]]:
    """The callbacks whose signature holds, whatever their bodies are."""
    for case in load("callbacks")["cases"]:
        if case["expect"]["status"] != 401 and case["headers"]:
            yield case


def sent_again(case: dict[str, Any]) -> str | None:
    """None where the server would send this body and sign it so; else what it would do instead."""
    raw = base64.b64decode(case["body_base64"])
    headers = {name.lower(): value for name, value in case["headers"].items()}
    signature = signatures.sign_standard(
        case["secret"], raw, webhook_id=headers["webhook-id"], timestamp=int(headers["webhook-timestamp"])
    )
    if signature not in headers["webhook-signature"].split():
        return signature
    if case["expect"]["status"] != 200:
        return None
    # Members that came later, or that an older server left out, are those of the vectors alone.
    told, own = json.loads(raw), json.loads(callback_body(approval_of(json.loads(raw))))
    same = {name: own[name] for name in told if name in own} == {name: told[name] for name in told if name in own}
    return None if same else json.dumps(own)


def approval_of(told: dict[str, Any]) -> Approval:
    """The approval that a callback tells of."""
    data = told.get("data")
    return Approval(
        approval_id=told["approval_id"],
        execution_id=told["execution_id"],
        node_id="node-1",
        approval_request_id=told["approval_request_id"],
        round=told["round"],
        status=ApprovalStatus(told["decision"]),
        on_expiry=OnExpiry.CANCEL,
        requested_at=LONG_AGO,
        expires_at=LONG_AGO,
        decided_at=LONG_AGO,
        new_status=ExecutionStatus(told.get("new_status", "running")),
        feedback=told.get("feedback"),
        response=None if data is None else json.dumps(data).encode(),
    )


def test_callbacks_are_built_and_signed_as_agents_take_them(ledger: Ledger) -> None:
    ledger.settle("callbacks", {case["name"]: sent_again(case) for case in signed_cases()})


def test_the_members_of_a_callback_are_those_that_agents_are_held_to() -> None:
    full = load("callbacks")["cases"][0]
    told = json.loads(base64.b64decode(full["body_base64"]))
    assert json.loads(callback_body(approval_of(told))) == told
