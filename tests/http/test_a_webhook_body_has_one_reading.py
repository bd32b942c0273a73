"""A webhook's body is read in one way or refused, and what the sender wrote is kept as sent."""

import json
from typing import Any

import pytest

from controlplane.domain.decisions import Decision, DecisionReceived
from controlplane.domain.errors import (
    DecisionConflict,
    DecisionMissing,
    HoldshortError,
    InvalidBody,
    InvalidDecision,
    RequestIdMissing,
)
from controlplane.http.inbound import Ignored, parse

FLAT = {"requestId": "r1", "decision": "approved"}
APPROVAL = "apr_01hzy3v8k4m2n6p9q7r5s3t1w0"


def envelope(kind: str = "completed", *, top: dict[str, Any] | None = None, **data: Any) -> dict[str, Any]:
    return {"type": kind, "data": {"id": "r1", **data}, **(top or {})}


def read(body: object) -> DecisionReceived:
    found = parse(json.dumps(body).encode())
    assert isinstance(found, DecisionReceived)
    return found


def refusal(body: object) -> type[HoldshortError]:
    with pytest.raises(HoldshortError) as caught:
        parse(json.dumps(body).encode())
    return type(caught.value)


@pytest.mark.parametrize("text", ['{"a" : 1.10}', "false", "0", '""', "[]", "{}", '"\\u00e9"', "1e3"])
def test_the_response_is_kept_as_the_bytes_received(text: str) -> None:
    flat = parse(b' {"response" : %b ,"requestId":"r1","decision":"approved"}' % text.encode())
    expired = parse(b'{"data":{"id":"r1", "response":%b},"type":"expired"}' % text.encode())
    assert isinstance(flat, DecisionReceived)
    assert isinstance(expired, DecisionReceived)
    assert flat.response == expired.response == text.encode()
    assert (flat.shape, expired.shape) == ("flat", "envelope")


def test_a_null_response_is_none() -> None:
    assert read(FLAT | {"response": None}).response is None
    assert read(envelope("expired", response=None)).response is None


@pytest.mark.parametrize("name", ["requestId", "approval_request_id", "approval_id"])
def test_an_id_of_ours_names_the_approval(name: str) -> None:
    found = read({name: APPROVAL, "decision": "approved"})
    assert (found.request_id, found.approval_id) == (None, APPROVAL)


def test_both_kinds_of_id_may_be_given() -> None:
    found = read(FLAT | {"approval_id": APPROVAL})
    assert (found.request_id, found.approval_id) == ("r1", APPROVAL)
    found = read(envelope(response={"decision": "deny"}, approval_id=APPROVAL, round=2))
    assert (found.request_id, found.approval_id, found.round) == ("r1", APPROVAL, 2)


def test_the_execution_and_round_are_read_in_either_spelling() -> None:
    assert read(FLAT | {"execution_id": "exec_1", "executionId": "exec_1", "round": 3}).execution_id == "exec_1"
    assert read(FLAT | {"round": 3}).round == 3
    for data in ({"executionId": "e"}, {"execution_id": "e"}, {"metadata": {"execution_id": "e", "round": "x"}}):
        assert read(envelope("expired", **data)).execution_id == "e"


@pytest.mark.parametrize(
    "more",
    [
        {"approval_request_id": "r2"},
        {"approval_request_id": ""},
        {"requestId": APPROVAL, "approval_id": APPROVAL[:-1] + "1"},
        {"executionId": "e1", "execution_id": "e2"},
        {"type": "completed", "data": {"requestId": "r2"}},
    ],
)
def test_ids_that_disagree_are_refused(more: dict[str, Any]) -> None:
    assert refusal(FLAT | more) is InvalidBody


@pytest.mark.parametrize(
    ("top", "data"),
    [
        ({"requestId": "r2"}, {}),
        ({}, {"requestId": "r2"}),
        ({"executionId": "e1"}, {"executionId": "e2"}),
        ({}, {"executionId": "e1", "metadata": {"executionId": "e2"}}),
        ({"round": 1}, {"round": 2}),
        ({"approval_id": APPROVAL}, {"approval_id": APPROVAL[:-1] + "1"}),
    ],
)
def test_ids_in_two_places_of_an_envelope_must_agree(top: dict[str, Any], data: dict[str, Any]) -> None:
    assert refusal(envelope("expired", top=top, **data)) is InvalidBody


@pytest.mark.parametrize(
    "body",
    [
        FLAT | {"response": {"decision": "rejected"}},
        FLAT | {"type": "expired", "data": {}},
        FLAT | {"type": "completed", "data": {"response": {"decision": "reject"}}},
        FLAT | {"type": "completed", "data": {"response": {"action": "reject"}}},
        envelope(top={"decision": "approved"}, response={"decision": "rejected"}),
        envelope("expired", response={"action": "continue"}),
        envelope("request.opened", top={"decision": "approved"}),
        envelope("ping", response={"action": "continue"}),
    ],
)
def test_words_that_disagree_are_refused(body: dict[str, Any]) -> None:
    assert refusal(body) is DecisionConflict


@pytest.mark.parametrize(
    "body",
    [
        envelope(),
        envelope(response=None),
        envelope(response="approved"),
        envelope(response=["approved"]),
        envelope(top={"decision": "approved"}),
        {"requestId": "r1", "decision": None},
        {"requestId": "r1", "response": {"decision": "approved"}},
        {"requestId": "r1", "action": "approve"},
        {"requestId": "r1", "status": "approved"},
    ],
)
def test_a_missing_decision_never_approves(body: dict[str, Any]) -> None:
    assert refusal(body) is DecisionMissing


@pytest.mark.parametrize(
    "body",
    [
        FLAT | {"decision": ""},
        FLAT | {"decision": ["approved"]},
        envelope(response={"decision": "approved", "action": "escalate"}),
        envelope(response={"decision": False}),
        envelope("expired", response={"decision": "ok"}),
    ],
)
def test_an_unknown_decision_never_approves(body: dict[str, Any]) -> None:
    assert refusal(body) is InvalidDecision


def test_words_that_agree_are_one() -> None:
    assert read(FLAT | {"response": {"decision": "approve"}}).decision is Decision.APPROVED
    assert read(envelope(response={"decision": "deny", "action": "Reject"})).decision is Decision.REJECTED
    assert read(envelope("expired", response={"decision": "expired"})).decision is Decision.EXPIRED


def test_a_senders_own_action_beside_a_flat_decision_is_its_own_matter() -> None:
    assert read(FLAT | {"response": {"action": "cancel"}}).decision is Decision.APPROVED


@pytest.mark.parametrize(
    "kind", ["request.sent", "request.viewed", "ping", " ", "Completed", "request.request.completed"]
)
def test_events_that_decide_nothing_are_ignored(kind: str) -> None:
    assert parse(json.dumps(envelope(kind, response={"decision": "draft"})).encode()) == Ignored(kind)


@pytest.mark.parametrize(
    "body", [{"type": "", "data": {}}, {"type": 1, "data": {}}, {"type": "completed", "data": []}, {}]
)
def test_what_is_no_envelope_needs_a_flat_answer(body: dict[str, Any]) -> None:
    assert refusal(body) is RequestIdMissing


@pytest.mark.parametrize("request_id", [None, "", " ", "\t", "\u3000"])
def test_a_blank_id_is_missing(request_id: str | None) -> None:
    assert refusal(FLAT | {"requestId": request_id}) is RequestIdMissing
    assert read(FLAT | {"requestId": request_id, "approval_id": APPROVAL}).request_id is None


ROUNDS: list[object] = [0, -1, True, 1.0, 1.5, "1", 2**31, 10**300, []]


@pytest.mark.parametrize(
    "more",
    [
        {"requestId": 1},
        {"requestId": ["r1"]},
        {"requestId": "a\u0007"},
        {"requestId": "r" * 257},
        {"requestId": "apr_\u00e9"},
        {"approval_id": ""},
        {"approval_id": {}},
        {"approval_id": "apr_" + "0" * 200},
        {"executionId": ""},
        {"executionId": "a/b"},
        {"executionId": 5},
        {"execution_id": "e" * 129},
        {"feedback": ["x"]},
        *({"round": value} for value in ROUNDS),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidBody) as caught:
        parse(json.dumps(FLAT | more).encode())
    assert isinstance(caught.value.extra["errors"], list)


def test_the_ids_at_the_limit_are_taken() -> None:
    found = read(FLAT | {"requestId": "\u00e9" * 256, "executionId": "e" * 128, "round": 2**31 - 1})
    assert (len(found.request_id or ""), len(found.execution_id or ""), found.round) == (256, 128, 2**31 - 1)


def test_feedback_is_the_top_one_else_the_responses_text() -> None:
    inner = {"feedback": "inner"}
    assert read(FLAT | {"feedback": "top", "response": inner}).feedback == "top"
    assert read(FLAT | {"feedback": None, "response": inner}).feedback == "inner"
    assert read(FLAT | {"response": {"feedback": 7}}).feedback == ""
    assert read(envelope("expired", response=inner)).feedback == "inner"
    assert read(envelope("expired", top={"feedback": "top"}, response=inner)).feedback == "top"
