"""Which reply ends a delivery, and when the next try comes."""

from datetime import timedelta

import pytest

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.deliveries import (
    Attempt,
    Claimed,
    DeliveryStatus,
    callback_body,
    judge,
    retry_delay,
    target_of,
)
from controlplane.domain.executions import ExecutionStatus
from controlplane.domain.json_text import parse_plain
from tests.factories import CALLBACK, NOW, approval

PENDING, DELIVERED, DEAD = DeliveryStatus.PENDING, DeliveryStatus.DELIVERED, DeliveryStatus.DEAD
SECONDS = [1, 5, 30, 120, 600, 1800, 3600, 3600, 3600]


def claimed(attempts: int = 1, age: timedelta = timedelta()) -> Claimed:
    return Claimed(
        delivery_id="dlv_1",
        url=CALLBACK,
        target=target_of(CALLBACK),
        secret=None,
        attempts=attempts,
        fence=1,
        told_at=NOW - age,
        now=NOW,
        approval=approval(status=ApprovalStatus.APPROVED),
    )


@pytest.mark.parametrize(("tries", "seconds"), list(enumerate(SECONDS, 1)))
def test_the_pause_grows_to_an_hour(tries: int, seconds: int):
    assert retry_delay(tries, 0.5) == timedelta(seconds=seconds)
    assert retry_delay(tries, 0.0) == timedelta(seconds=seconds * 0.8)
    assert retry_delay(tries, 1.0) == timedelta(seconds=seconds * 1.2)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
@pytest.mark.parametrize("reply", [b"", b"ok", b"{}", b'{"resolved": true}', b'{"resolved": 0}', b"[false]", b"\xff"])
def test_any_2xx_is_delivered(status: int, reply: bytes):
    assert judge(claimed(), Attempt(status, reply), jitter=0.5).status is DELIVERED


@pytest.mark.parametrize("attempt", [Attempt(status) for status in (100, 199, 300, 301, 302, 400, 404, 429, 500, 503)])
def test_any_other_status_is_tried_again(attempt: Attempt):
    verdict = judge(claimed(), attempt, jitter=0.5)
    assert (verdict.status, verdict.retry_in) == (PENDING, timedelta(seconds=1))
    assert verdict.error == f"status {attempt.status}"


def test_a_receiver_without_a_pause_is_tried_again():
    verdict = judge(claimed(2), Attempt(200, b'{"resolved": false}'), jitter=0.5)
    assert (verdict.status, verdict.retry_in) == (PENDING, timedelta(seconds=5))
    assert verdict.error is not None


def test_no_reply_is_tried_again_and_says_why():
    assert judge(claimed(), Attempt(error="connection refused"), jitter=0.5).error == "connection refused"
    assert judge(claimed(), Attempt(), jitter=0.5).error == "no reply"


@pytest.mark.parametrize("age", [timedelta(), timedelta(hours=100)])
def test_gone_is_the_end(age: timedelta):
    verdict = judge(claimed(age=age), Attempt(410), jitter=0.5)
    assert (verdict.status, verdict.retry_in) == (DEAD, None)


@pytest.mark.parametrize(
    ("age", "status"),
    [(timedelta(hours=72) - timedelta(microseconds=1), PENDING), (timedelta(hours=72), DEAD)],
)
def test_after_three_days_it_is_dead(age: timedelta, status: DeliveryStatus):
    assert judge(claimed(200, age), Attempt(500), jitter=0.5).status is status
    assert judge(claimed(200, age), Attempt(200), jitter=0.5).status is DELIVERED


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://agent/cb", "http://agent:80"),
        ("https://agent/cb?x=1", "https://agent:443"),
        ("http://Agent:8001/other", "http://agent:8001"),
        ("http://[::1]:8001/", "http://::1:8001"),
    ],
)
def test_a_target_is_an_origin(url: str, target: str):
    assert target_of(url) == target


@pytest.mark.parametrize("value", [b"null", b"false", b"0", b'""', b"{}", b'{"a":  1.0}'])
def test_the_senders_own_value_is_told_as_it_came(value: bytes):
    told = approval(status=ApprovalStatus.REJECTED, feedback="no", response=value, new_status=ExecutionStatus.CANCELLED)
    body = callback_body(told)
    assert body.count(value) >= 2
    assert parse_plain(body) == {
        "execution_id": "run-1",
        "approval_request_id": "a",
        "approval_id": "apr_a",
        "round": 1,
        "decision": "rejected",
        "new_status": "cancelled",
        "feedback": "no",
        "response": parse_plain(value),
        "data": parse_plain(value),
    }


def test_feedback_is_always_a_string_and_no_value_is_null():
    body = parse_plain(callback_body(approval(status=ApprovalStatus.APPROVED)))
    assert isinstance(body, dict)
    assert (body["feedback"], body["response"], body["data"]) == ("", None, None)
