"""The routes of the control plane over the book: a call in, an answer or something to wait for out."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import msgspec

from holdshort._core import Call, Reply
from holdshort.testing import _views
from holdshort.testing._book import Ask, Book, Kept, Refusal

_NAME = re.compile(r"[A-Za-z0-9._~:-]{1,128}")


class Hold(msgspec.Struct):
    """An answer that waits until one of these approvals is final, or the call's time is up."""

    approvals: list[Kept]
    show: Callable[[], Any]
    seconds: float


class _Visit(msgspec.Struct):
    """One call, taken apart."""

    book: Book
    names: dict[str, str]
    query: dict[str, str]
    body: Any

    def required(self, member: str) -> Any:
        if member not in self.body:
            raise Refusal("invalid_field", f"{member}: required", errors=[{"field": member, "rule": "required"}])
        return self.body[member]


Handler = Callable[[_Visit], Any]


def answer(book: Book, call: Call[Any]) -> Reply | Hold:
    """What the control plane says to a call; after a Hold has waited, `render` its `show()`."""
    try:
        handler, names = _route(call)
        body = msgspec.json.decode(call.body) if call.body else {}
        outcome = handler(_Visit(book, names, dict(call.query), body))
    except Refusal as refusal:
        return render(_views.problem(refusal), refusal.status)
    return outcome if isinstance(outcome, Hold) else render(outcome)


def render(shown: Any, status: int = 200) -> Reply:
    """JSON as an answer."""
    return Reply(status, {"content-type": "application/json"}, msgspec.json.encode(shown))


def _route(call: Call[Any]) -> tuple[Handler, dict[str, str]]:
    for method, pattern, handler in _ROUTES:
        if method == call.method and (found := pattern.fullmatch(call.path.removeprefix("/api/v1"))):
            return handler, {name: unquote(value) for name, value in found.groupdict().items() if value is not None}
    raise Refusal("route_not_found", f"there is no {call.method} {call.path}")


def _create(visit: _Visit) -> Any:
    known = {name: visit.body.get(name) for name in ("reasoner", "run_id", "input")}
    ids = {name: str(visit.required(name)) for name in ("node_id", "execution_id")}
    for name, value in ids.items():
        if not _NAME.fullmatch(value):
            raise _invalid(name, "1-128 of A-Z a-z 0-9 . _ ~ : -")
    run, _ = visit.book.create(**ids, **known)
    return _views.execution(visit.book, run)


def _execution(visit: _Visit) -> Any:
    return _views.execution(visit.book, visit.book.execution(visit.names["execution"]))


def _executions(visit: _Visit) -> Any:
    wanted = {name: visit.query[name] for name in ("status", "node_id") if name in visit.query}
    found = [run for run in visit.book.executions.values() if all(getattr(run, k) == v for k, v in wanted.items())]
    return {"executions": [_views.execution(visit.book, run) for run in found], "next_cursor": None}


def _report(visit: _Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    visit.book.report(run, visit.required("status"), visit.body.get("result"), visit.body.get("error"))
    return _views.execution(visit.book, run)


def _cancel(visit: _Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    visit.book.cancel(run, visit.body.get("reason") or "cancelled_by_operator")
    return _views.execution(visit.book, run)


def _note(visit: _Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    note = {"note_id": visit.required("note_id"), "message": visit.required("message"), "tags": visit.body.get("tags")}
    return run.notes.setdefault(note["note_id"], note)


def _ask(visit: _Visit) -> Any:
    try:
        ask = msgspec.convert(visit.body, Ask)
    except msgspec.ValidationError as error:
        raise _invalid("body", str(error)) from error
    _check(ask)
    run = visit.book.execution(visit.names["execution"], visit.names.get("node"))
    return _views.asked(visit.book.ask(run, ask))


def _check(ask: Ask) -> None:
    if not 1 <= len(ask.approval_request_id) <= 256 or ask.approval_request_id.startswith("apr_"):
        raise _invalid("approval_request_id", "1-256 characters, not beginning with apr_")
    if ask.on_expiry not in {"cancel", "resume"}:
        raise _invalid("on_expiry", "cancel or resume")
    if ask.round is not None and ask.round < 1:
        raise _invalid("round", "an integer from 1 on")
    if ask.expires_in_hours is not None and not 1 / 3600 <= ask.expires_in_hours <= 8760:
        raise _invalid("expires_in_hours", "1 s to 8760 h")
    if ask.callback_secret is not None and not 16 <= len(ask.callback_secret) <= 256:
        raise _invalid("callback_secret", "16-256 characters")


def _invalid(field: str, rule: str) -> Refusal:
    return Refusal("invalid_field", f"{field}: {rule}", errors=[{"field": field, "rule": rule}])


def _status(visit: _Visit) -> Any:
    run = visit.book.execution(visit.names["execution"], visit.names.get("node"))
    found = visit.book.rounds(run.execution_id, visit.query.get("approval_request_id"))
    if not found:
        raise Refusal("no_approval_request", "this execution has not asked that")
    approval = found[-1]
    return Hold([approval], lambda: _views.status(visit.book, approval), float(visit.query.get("wait", 0)))


def _wait(visit: _Visit) -> Any:
    known = [visit.book.approvals[each] for each in visit.required("approval_ids") if each in visit.book.approvals]

    def show() -> Any:
        return {"approvals": [_views.status(visit.book, each) for each in known if each.final]}

    return Hold(known, show, float(visit.required("wait")))


def _approvals(visit: _Visit) -> Any:
    wanted = {k: v for k, v in visit.query.items() if k in {"status", "node_id", "execution_id", "approval_request_id"}}
    shown = [_views.approval(visit.book, each) for each in visit.book.approvals.values()]
    found = [each for each in shown if all(each[name] == value for name, value in wanted.items())]
    return {"approvals": found, "next_cursor": None}


def _approval(visit: _Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    return {**_views.approval(visit.book, approval), "history": approval.history}


def _callback(visit: _Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    approval.ask.callback_url = visit.required("callback_url")
    approval.ask.callback_secret = visit.body.get("callback_secret")
    return _views.approval(visit.book, approval)


def _decision(visit: _Visit) -> Any:
    return _decide(visit, visit.book.approval(visit.names["approval"]))


def _answer_execution(visit: _Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    found = visit.book.rounds(run.execution_id, visit.body.get("approval_request_id"))
    pending = [each for each in found if not each.final]
    if not found:
        raise Refusal("no_approval_request", "this execution has not asked that")
    if len(pending) > 1:
        raise Refusal("ambiguous_request_id", "several are pending; name one")
    return _decide(visit, (pending or found)[-1])


def _decide(visit: _Visit, approval: Kept) -> Any:
    seen = (visit.body.get("payload_digest", approval.ask.digest), visit.body.get("round", approval.round))
    if seen != (approval.ask.digest, approval.round):
        raise Refusal("approval_changed", "another payload or round stands")
    feedback = visit.body.get("feedback") or visit.body.get("reason") or ""
    applied = visit.book.decide(approval, str(visit.required("decision")), feedback, visit.body.get("response"))
    return _views.decided(visit.book, approval, applied=applied)


def _withdraw(visit: _Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    visit.book.settle(approval, "withdrawn")
    return _views.approval(visit.book, approval)


def _expire(visit: _Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    visit.book.settle(approval, "expired")
    return _views.approval(visit.book, approval)


def _nothing(name: str) -> Handler:
    return lambda _: {name: [], "next_cursor": None}


def _no_delivery(_: _Visit) -> Any:
    raise Refusal("delivery_not_found", "nothing is delivered in memory")


def _no_webhook(_: _Visit) -> Any:
    raise Refusal("webhook_not_configured", "decide() decides here; there is no webhook secret")


def _table(*routes: tuple[str, str, Handler]) -> list[tuple[str, re.Pattern[str], Handler]]:
    return [(method, re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)), do) for method, path, do in routes]


_ROUTES = _table(
    ("POST", "/executions", _create),
    ("GET", "/executions", _executions),
    ("GET", "/executions/{execution}", _execution),
    ("POST", "/executions/{execution}/status", _report),
    ("POST", "/executions/{execution}/cancel", _cancel),
    ("POST", "/executions/{execution}/notes", _note),
    ("POST", "/executions/{execution}/request-approval", _ask),
    ("POST", "/agents/{node}/executions/{execution}/request-approval", _ask),
    ("GET", "/executions/{execution}/approval-status", _status),
    ("GET", "/agents/{node}/executions/{execution}/approval-status", _status),
    ("POST", "/executions/{execution}/approval-response", _answer_execution),
    ("POST", "/approvals/wait", _wait),
    ("GET", "/approvals", _approvals),
    ("GET", "/approvals/{approval}", _approval),
    ("POST", "/approvals/{approval}/callback", _callback),
    ("POST", "/approvals/{approval}/decision", _decision),
    ("POST", "/approvals/{approval}/withdraw", _withdraw),
    ("POST", "/approvals/{approval}/expire", _expire),
    ("POST", "/webhooks/approval-response", _no_webhook),
    ("GET", "/parked", _nothing("parked")),
    ("GET", "/deliveries", _nothing("deliveries")),
    ("POST", "/deliveries/{delivery}/redrive", _no_delivery),
)
