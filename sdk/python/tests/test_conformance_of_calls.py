"""What an answer of the control plane becomes, when a call is sent again, and what a callback wakes: in every SDK."""

import base64
from typing import Any

import msgspec
import pytest
from holdshort import Agent, ConnectionFailed, HoldshortError, RunEnded
from holdshort._core import RETRIED, Again, Call, Reply, Unreachable, judge, read
from holdshort._pauses import Key

from sdk.python.tests.vectors import Ledger, load

CALL: Call[Any] = Call(method="GET", path="/api/v1/x", reads=dict)


def error_of(case: dict[str, Any]) -> dict[str, Any]:
    with pytest.raises((HoldshortError, RunEnded)) as raised:
        read(CALL, Reply(case["status"], case["headers"], case["body"].encode()))
    error = raised.value
    assert isinstance(error, HoldshortError | RunEnded)
    assert error.status == case["status"]
    above = [kind.__name__ for kind in type(error).__mro__[1:] if issubclass(kind, HoldshortError | RunEnded)]
    says = case["expect"]["says"]
    return {
        "kind": type(error).__name__,
        "is": above,
        "code": error.code,
        "says": says if says is None or says in error.message else error.message,
        "request_id": error.request_id,
        "details": dict(error.details),
    }


def test_every_answer_becomes_the_error_that_all_languages_give(ledger: Ledger) -> None:
    cases = load("errors")["cases"]
    ledger.settle("errors", {case["name"]: (error_of(case), case["expect"]) for case in cases})


def next_of(case: dict[str, Any]) -> dict[str, Any]:
    given = case["reply"]
    outcome = Unreachable("refused") if given is None else Reply(given["status"], given["headers"], b"")
    try:
        judged = judge(CALL, outcome, case["tries"], case["left_seconds"], jitter=case["jitter"])
    except ConnectionFailed:
        return {"then": "fail"}
    if isinstance(judged, Again):
        return {"then": "again", "seconds": round(judged.delay, 6)}
    return {"then": "answer"}


def test_every_call_is_sent_again_when_all_languages_do(ledger: Ledger) -> None:
    vectors = load("retries")
    assert sorted(RETRIED) == vectors["retried"]
    ledger.settle("retries", {case["name"]: (next_of(case), case["expect"]) for case in vectors["cases"]})


async def answered(agent: Agent, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
    """What the agent's own route says to a callback."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        sent.append(message)

    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    await agent.asgi({"type": "http", "method": "POST", "path": "/webhooks/approval", "headers": lines}, receive, send)
    return sent[0]["status"], msgspec.json.decode(sent[1]["body"])


async def outcome_of(case: dict[str, Any], waiting: dict[str, Any]) -> dict[str, Any]:
    agent = Agent("contract-reviewer", "1.0.0")
    key = Key(**waiting)
    pause = agent.registry.register(key)
    pause.secret = case["secret"]
    status, answer = await answered(agent, case["headers"], base64.b64decode(case["body_base64"]))
    found = {"status": status, **{name: answer[name] for name in ("resolved", "error") if name in answer}}
    if pause.future.done():
        found["result"] = msgspec.to_builtins(pause.future.result())
    agent.registry.release(key, pause)
    return found


async def test_every_callback_wakes_what_all_languages_wake(ledger: Ledger) -> None:
    vectors = load("callbacks")
    found = {case["name"]: (await outcome_of(case, vectors["waiting"]), case["expect"]) for case in vectors["cases"]}
    ledger.settle("callbacks", found)
