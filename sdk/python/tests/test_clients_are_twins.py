import inspect
from typing import Any

import pytest
from holdshort import (
    AlreadyAnswered,
    AlreadyDecided,
    AnswerTaken,
    ApprovalChanged,
    ApprovalFilter,
    AsyncClient,
    BadRequest,
    Client,
    ConnectionFailed,
    DuplicateRequest,
    FeedbackCancelled,
    FeedbackEnded,
    FeedbackExpired,
    InvalidAnswer,
    InvalidField,
    NotAuthorised,
    NotFound,
    Question,
    Refused,
    RequestIdUsed,
    StaleInstance,
    Unavailable,
    Verdict,
    _core,
    _feedback_routes,
    _node_routes,
    _routes,
)
from holdshort._refusals import refusal
from holdshort.testing import ControlPlane

SHELL = {"send", "events", "execute", "human_feedback", "feedback_events", "close", "aclose"}


def public(kind: type) -> dict[str, Any]:
    return {n: m for n, m in vars(kind).items() if not n.startswith("_") and callable(m)}


def test_the_same_methods_with_the_same_signatures() -> None:
    blocking, awaited = public(Client), public(AsyncClient)
    assert set(blocking) - SHELL == set(awaited) - SHELL
    for name in set(blocking) - SHELL:
        ours, theirs = inspect.signature(blocking[name]), inspect.signature(awaited[name])
        assert ours == theirs
        assert inspect.iscoroutinefunction(awaited[name])
        assert inspect.getdoc(blocking[name]) == inspect.getdoc(awaited[name])
    for name in ("send", "events", "execute", "human_feedback", "feedback_events"):
        assert inspect.signature(blocking[name]).parameters == inspect.signature(awaited[name]).parameters


def test_every_route_is_a_method() -> None:
    routes = {
        name
        for module in (_routes, _node_routes, _feedback_routes)
        for name, made in vars(module).items()
        if inspect.isfunction(made) and made.__module__ == module.__name__ and not name.startswith("_")
    }
    assert routes - {"event_stream", "feedback_stream", "held_execute", "new_key"} == set(public(Client)) - SHELL


def test_a_blocking_client_through_a_whole_life(plane: ControlPlane) -> None:
    with Client(transport=plane.blocking_transport) as client:
        run = client.create_execution("n", "run-1", reasoner="r", input={"a": 1})
        assert run.status == "running"
        asked = client.request_approval("run-1", Question(approval_request_id="x", payload={"b": 2}), node_id="n")
        assert (asked.status, asked.round, asked.final) == ("pending", 1, False)
        assert client.wait_for_approvals([asked.approval_id], wait=0).approvals == []
        assert [a.approval_id for a in client.list_approvals(ApprovalFilter(status="pending")).approvals] == [
            asked.approval_id
        ]
        with pytest.raises(ApprovalChanged):
            client.decide(asked.approval_id, Verdict(decision="approve", round=2))
        with pytest.raises(BadRequest) as unknown:
            client.decide(asked.approval_id, Verdict(decision="yes"))
        assert unknown.value.code == "invalid_decision"
        verdict = Verdict(decision="approve", reason="fine", response={"c": 3}, payload_digest=asked.payload_digest)
        assert client.answer_execution("run-1", verdict).new_status == "running"
        assert client.decide(asked.approval_id, verdict).status == "already_processed"
        with pytest.raises(AlreadyDecided) as first:
            client.decide(asked.approval_id, Verdict(decision="reject"))
        assert first.value.details["approval_status"] == "approved"
        status = client.get_approval_status("run-1", wait=30)
        assert status.final
        assert status.response is not None
        assert (status.response.feedback, status.response.data) == ("fine", {"c": 3})
        shown = client.get_approval(asked.approval_id)
        assert [row["type"] for row in shown.history] == ["approval.requested", "approval.approved"]
        assert client.withdraw(asked.approval_id).status == "approved"
        assert client.expire(asked.approval_id).status == "approved"
        client.add_note("run-1", "hello", note_id="note-1")
        assert client.report_status("run-1", "succeeded", result=[1]).final
        assert client.cancel_execution("run-1").status == "succeeded"
        assert [e.execution_id for e in client.list_executions(status="succeeded").executions] == ["run-1"]
        assert client.list_deliveries().deliveries == client.list_parked().parked == []
        with pytest.raises(NotFound):
            client.redrive("d")
        with pytest.raises(InvalidField) as field:
            client.request_approval("run-1", Question(approval_request_id="apr_x"))
        assert field.value.details["errors"][0]["field"] == "approval_request_id"
        with plane.away(), pytest.raises(ConnectionFailed):
            Client(transport=plane.blocking_transport, patience=0.1).get_execution("run-1")


async def test_an_awaited_client_waits_for_what_is_decided(plane: ControlPlane) -> None:
    async with AsyncClient(transport=plane.transport) as client:
        await client.create_execution("n", "run-1")
        asked = await client.request_approval("run-1", Question(approval_request_id="x"))
        plane.decide("x", "approved")
        found = await client.wait_for_approvals([asked.approval_id], wait=30)
        assert [each.status for each in found.approvals] == ["approved"]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "invalid_body", BadRequest),
        (401, "missing_key", NotAuthorised),
        (401, "missing_signature", NotAuthorised),
        (403, "execution_ownership_mismatch", NotAuthorised),
        (404, "approval_not_found", NotFound),
        (409, "already_decided", AlreadyDecided),
        (409, "duplicate_request", DuplicateRequest),
        (409, "request_id_used", RequestIdUsed),
        (409, "already_answered", AlreadyAnswered),
        (410, "request_expired", FeedbackExpired),
        (410, "request_cancelled", FeedbackCancelled),
        (410, "answer_taken", AnswerTaken),
        (410, "something_else", FeedbackEnded),
        (422, "invalid_answer", InvalidAnswer),
        (429, "too_many_questions", Unavailable),
        (413, "body_too_large", BadRequest),
        (418, None, Refused),
        (422, "invalid_field", InvalidField),
        (500, "internal_error", Unavailable),
        (503, None, Unavailable),
        (409, "stale_instance", StaleInstance),
    ],
)
def test_an_error_answer_becomes_its_class(status: int, code: str | None, kind: type) -> None:
    problem = {"error": code, "message": "what to do", "round": 2} if code else {}
    error = refusal(status, problem, "req-1")
    assert type(error) is kind
    assert (error.status, error.request_id) == (status, "req-1")
    if code:
        assert (error.code, error.message, error.details) == (code, "what to do", {"round": 2})


def test_an_answer_that_is_none_of_ours_is_an_error_and_no_decision() -> None:
    call = _routes.get_approval_status("run-1")
    for body in (b"<html>", b"{}", b'{"status":"approved"}', b"null"):
        with pytest.raises(Refused) as refused:
            _core.read(call, _core.Reply(200, {}, body))
        assert refused.value.code == "unexpected_reply"


def test_retries_start_fast_are_jittered_and_honour_retry_after() -> None:
    gone = _core.Unreachable("reset")
    assert _core.delay_after(gone, 1, 1.0) == 0.05
    assert _core.delay_after(gone, 1, 0.0) == 0.025
    assert [round(_core.delay_after(gone, n, 1.0), 2) for n in (2, 3, 8, 9, 5000)] == [0.1, 0.2, 6.4, 10.0, 10.0]
    for value, seconds in [("2", 2), ("9999", 60), ("Mon, 30 Nov 2026 00:00:07 GMT", 7), ("soon", 0), ("-1", 0)]:
        headers = {"retry-after": value, "date": "Mon, 30 Nov 2026 00:00:00 GMT"}
        delay = _core.delay_after(_core.Reply(503, headers, b""), 1, 1.0)
        assert delay == pytest.approx(min(60, seconds + 0.05))
    call = _routes.get_execution("e")
    for status in (429, 502, 503, 504):
        assert isinstance(_core.judge(call, _core.Reply(status, {}, b""), 1, None, jitter=0), _core.Again)
    for status in (200, 400, 409, 500):
        assert isinstance(_core.judge(call, _core.Reply(status, {}, b""), 1, None, jitter=0), _core.Reply)
    assert isinstance(_core.judge(call, _core.Reply(503, {}, b""), 9, 0.1, jitter=0), _core.Reply)


def test_ids_in_paths_are_quoted() -> None:
    assert _routes.get_execution("a/../b?c").path == "/api/v1/executions/a%2F..%2Fb%3Fc"
    assert _routes.list_approvals(ApprovalFilter(q="x", limit=5)).query == (("q", "x"), ("limit", "5"))


@pytest.mark.parametrize(
    "body", [b'{"error": {"code": 404}}', b'{"error": [], "message": {}}', b'"no"', b"\xff", b'{"a": "\xff"}']
)
@pytest.mark.parametrize("status", [200, 302, 404, 500])
def test_what_something_in_between_answers_is_an_error_of_this_package(status: int, body: bytes) -> None:
    with pytest.raises(Refused):
        _core.read(_routes.get_execution("a"), _core.Reply(status, {}, body))


@pytest.mark.parametrize(("left", "reply"), [(None, 30.0), (3600.0, 30.0), (12.0, 12.0), (0.0, 5.0), (-1.0, 5.0)])
def test_a_silent_server_is_not_waited_for_longer_than_the_caller_would(left: float | None, reply: float) -> None:
    assert _core.within(_routes.get_execution("a"), left).reply == reply
    held = _core.within(_routes.wait_for_approvals(["a"], wait=50), left)
    assert (held.hold, held.reply) == (50, reply)


async def test_the_callers_patience_reaches_the_transport(plane: ControlPlane) -> None:
    seen: list[float] = []

    class Seeing:
        async def exchange(self, call: _core.Call[Any]) -> _core.Reply:
            seen.append(call.reply)
            return await plane.transport.exchange(call)

    client = AsyncClient(transport=Seeing(), patience=6)  # type: ignore[arg-type]
    await client.create_execution("n", "run-1")
    assert 5 <= seen[0] <= 6


@pytest.mark.parametrize("address", ["localhost:8080", "ftp://a", "127.0.0.1"])
def test_an_address_that_no_try_could_reach_is_refused_at_once(address: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(ConnectionFailed, match="http://"):
            kind(address)
