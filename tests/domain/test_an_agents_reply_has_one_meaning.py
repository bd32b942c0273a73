"""What an agent answers to a dispatch has one meaning: it has the run, it is asked again, or the run fails."""

from datetime import timedelta
from typing import Any

import pytest

from controlplane.domain.deliveries import REPLY_LIMIT_BYTES, Attempt
from controlplane.domain.dispatching import (
    SAID_LIMIT_BYTES,
    Dispatch,
    DispatchKind,
    Settling,
    cancel_request,
    judge,
    retry_delay,
    run_request,
    with_reply,
)
from tests.factories import HOUR, NOW


def sent(**changes: Any) -> Dispatch:
    fields: dict[str, Any] = {
        "node_id": "node-1",
        "execution_id": "run-1",
        "kind": DispatchKind.RUN,
        "claim": 1,
        "fence": 1,
        "attempts": 1,
        "base_url": "http://127.0.0.1:9",
        "instance_id": "i1",
        "replay": True,
        "taken": False,
        "reasoner": "work",
        "input": b'{"a":1}',
        "reason": None,
        "run_id": "run_9",
        "parent_execution_id": None,
        "steps": 2,
        "time_left": 12.5,
        "start_by": NOW + HOUR,
        "now": NOW,
    }
    return Dispatch(**(fields | changes))


def settling(attempt: Attempt, **changes: Any) -> Settling:
    return judge(sent(**changes), attempt, jitter=0.5).settling


def test_accepted_means_that_the_agent_has_it():
    assert settling(Attempt(202, b'{"status":"processing"}')) is Settling.HAS_IT


def test_another_success_is_the_result_of_an_agent_that_ran_it_at_once():
    verdict = judge(sent(), Attempt(200, b'{"n": 1.10}'), jitter=0.5)
    assert (verdict.settling, verdict.result) == (Settling.ANSWERED, b'{"n": 1.10}')


@pytest.mark.parametrize("reply", [b"", b"<html>", b"{", b"\xff", b"[" * 100_000])
def test_a_success_that_is_no_json_fails_the_run_with_what_was_said(reply: bytes):
    verdict = judge(sent(), Attempt(200, reply), jitter=0.5)
    assert (verdict.settling, verdict.reason) == (Settling.REFUSED, "agent_reply_invalid")
    size = f": invalid reply, {len(reply):,} bytes" if reply else ""
    assert verdict.error == "status 200" + size + (" or more" if len(reply) > REPLY_LIMIT_BYTES else "")
    assert verdict.reply == (reply[:SAID_LIMIT_BYTES].decode(errors="replace") or None)


@pytest.mark.parametrize(("status", "reason"), [(400, "agent_refused"), (404, "agent_refused"), (422, "agent_refused")])
def test_a_refusal_fails_the_run_with_what_was_said(status: int, reason: str):
    verdict = judge(sent(), Attempt(status, b"no such reasoner\0"), jitter=0.5)
    assert (verdict.settling, verdict.reason) == (Settling.REFUSED, reason)
    assert verdict.error == f"status {status}: invalid reply, 17 bytes"
    assert verdict.reply == "no such reasoner\ufffd"
    assert with_reply(verdict.error, verdict.reply) == f"status {status}: no such reasoner\ufffd"


def test_a_plain_function_that_raised_is_not_run_again():
    verdict = judge(sent(skill=True), Attempt(500, b'{"detail": "no"}'), jitter=0.5)
    assert (verdict.settling, verdict.reason) == (Settling.REFUSED, "agent_refused")
    assert settling(Attempt(503, b""), skill=True) is Settling.AGAIN
    assert settling(Attempt(500, b"")) is Settling.AGAIN


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_not_followed_and_no_acceptance(status: int):
    assert settling(Attempt(status)) is Settling.REFUSED


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503])
def test_not_now_is_tried_again(status: int):
    verdict = judge(sent(attempts=2), Attempt(status), jitter=0.5)
    assert (verdict.settling, verdict.retry_in) == (Settling.AGAIN, timedelta(seconds=1))


def test_an_agent_that_is_not_there_is_tried_again_until_the_time_is_up():
    gone = Attempt(error="ConnectError: refused")
    assert settling(gone) is Settling.AGAIN
    verdict = judge(sent(start_by=NOW), gone, jitter=0.5)
    assert (verdict.settling, verdict.reason, verdict.error) == (
        Settling.REFUSED,
        "agent_unreachable",
        "ConnectError: refused",
    )
    assert settling(gone, start_by=NOW, taken=True) is Settling.AGAIN


def test_a_request_without_a_reply_is_repeated_only_where_that_is_harmless():
    lost = Attempt(error="no reply within 5 s", written=True)
    assert settling(lost, replay=True) is Settling.AGAIN
    assert settling(lost, replay=False) is Settling.HAS_IT
    assert settling(Attempt(error="refused", written=False), replay=False) is Settling.AGAIN


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 0.2), (2, 1), (4, 5), (7, 60), (500, 60)])
def test_the_pauses_grow_to_a_minute(attempts: int, seconds: float):
    assert retry_delay(attempts, 0.5) == timedelta(seconds=seconds)
    assert retry_delay(attempts, 0.0) == timedelta(seconds=seconds) * 0.8
    assert retry_delay(attempts, 1.0) == timedelta(seconds=seconds) * 1.2


def test_an_end_that_overtook_its_run_is_told_again():
    unknown = Attempt(404)
    assert settling(unknown, kind=DispatchKind.CANCEL, attempts=1) is Settling.AGAIN
    assert settling(unknown, kind=DispatchKind.CANCEL, attempts=3) is Settling.HAS_IT


@pytest.mark.parametrize("status", [200, 202, 409, 410])
def test_a_cancel_that_was_heard_is_done(status: int):
    assert settling(Attempt(status), kind=DispatchKind.CANCEL) is Settling.HAS_IT


def test_a_cancel_is_tried_a_few_times():
    assert settling(Attempt(error="refused"), kind=DispatchKind.CANCEL, attempts=7) is Settling.AGAIN
    assert settling(Attempt(error="refused"), kind=DispatchKind.CANCEL, attempts=8) is Settling.HAS_IT


def test_a_run_is_sent_as_its_raw_input_under_its_fence():
    url, headers, body = run_request(sent(reasoner="a/b c", parent_execution_id="p"))
    assert (url, body) == ("http://127.0.0.1:9/reasoners/a%2Fb%20c", b'{"a":1}')
    assert headers == {
        "X-Execution-ID": "run-1",
        "X-Run-ID": "run_9",
        "X-Workflow-ID": "run_9",
        "X-Parent-Execution-ID": "p",
        "X-Holdshort-Fence": "1",
        "X-Holdshort-Steps": "2",
        "X-Holdshort-Instance": "i1",
        "X-Holdshort-Time-Left": "12.500",
    }
    bare = sent(input=None, run_id=None, time_left=None, replay=False)
    assert run_request(bare)[2] == b"{}"
    assert set(run_request(bare)[1]) == {"X-Execution-ID", "X-Holdshort-Fence", "X-Holdshort-Steps"}


def test_a_cancel_names_the_run_and_the_reason():
    url, headers, body = cancel_request(sent(kind=DispatchKind.CANCEL, execution_id="a~b", reason="execution_timeout"))
    assert url == "http://127.0.0.1:9/_internal/executions/a~b/cancel"
    assert (headers["X-Holdshort-Fence"], body) == ("1", b'{"reason":"execution_timeout"}')


def test_a_plain_function_lies_under_a_path_of_its_own():
    assert run_request(sent(reasoner="a b"))[0] == "http://127.0.0.1:9/reasoners/a%20b"
    assert run_request(sent(reasoner="a b", skill=True))[0] == "http://127.0.0.1:9/skills/a%20b"
