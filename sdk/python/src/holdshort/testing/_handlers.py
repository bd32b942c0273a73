"""The routes of the control plane over the book: a call in, an answer or something to wait for out."""

import re
import unicodedata
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec

from holdshort._core import Call, Reply
from holdshort._wire import FINAL_EXECUTION
from holdshort.testing import _filled, _node_handlers, _question_handlers, _steps, _views
from holdshort.testing._book import Ask, Book, Kept, Refusal
from holdshort.testing._visits import Handler, Hold, Visit, check_fence, invalid, seconds

_NAME = re.compile(r"[A-Za-z0-9._~:-]{1,128}")


def answer(book: Book, call: Call[Any]) -> Reply | Hold:
    """What the control plane says to a call; after a Hold has waited, what `held` says."""
    try:
        handler, names = _route(call)
        body = msgspec.json.decode(call.body) if call.body else {}
        visit = Visit(book, names, dict(call.query), body, dict(call.headers))
        if handler in _OWN:
            check_fence(visit)
        outcome = handler(visit)
    except Refusal as refusal:
        return render(_views.problem(refusal), refusal.status)
    return outcome if isinstance(outcome, Hold) else render(outcome)


def held(hold: Hold) -> Reply:
    """What the control plane says when a call was held long enough."""
    try:
        return render(hold.show())
    except Refusal as refusal:
        return render(_views.problem(refusal), refusal.status)


def render(shown: Any, status: int = 200) -> Reply:
    """JSON as an answer."""
    return Reply(status, {"content-type": "application/json"}, msgspec.json.encode(shown))


def _route(call: Call[Any]) -> tuple[Handler, dict[str, str]]:
    for method, pattern, handler in _ROUTES:
        if method == call.method and (found := pattern.fullmatch(call.path.removeprefix("/api/v1"))):
            return handler, {name: unquote(value) for name, value in found.groupdict().items() if value is not None}
    raise Refusal("route_not_found", f"there is no {call.method} {call.path}")


def _create(visit: Visit) -> Any:
    known = {name: visit.body.get(name) for name in ("reasoner", "run_id", "input")}
    ids = {name: str(visit.required(name)) for name in ("node_id", "execution_id")}
    for name, value in ids.items():
        if not _NAME.fullmatch(value):
            raise invalid(name, "1-128 of A-Z a-z 0-9 . _ ~ : -")
    run, _ = visit.book.create(**ids, **known)
    return _views.execution(visit.book, run)


def _execution(visit: Visit) -> Any:
    return _views.execution(visit.book, visit.book.execution(visit.names["execution"]))


def _executions(visit: Visit) -> Any:
    wanted = {name: visit.query[name] for name in ("status", "node_id") if name in visit.query}
    found = [run for run in visit.book.executions.values() if all(getattr(run, k) == v for k, v in wanted.items())]
    return _page(visit, "executions", [_views.execution(visit.book, run) for run in reversed(found)])


def _report(visit: Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    if visit.required("status") not in FINAL_EXECUTION | {"queued", "running", "waiting"}:
        raise invalid("status", "the status of an execution")
    told = (visit.body.get(member) for member in ("result", "error", "reason"))
    visit.book.report(run, visit.required("status"), *told)
    return _views.execution(visit.book, run)


def _cancel(visit: Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    visit.book.cancel(run, visit.body.get("reason") or "cancelled_by_operator")
    return _views.execution(visit.book, run)


def _note(visit: Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    note = {"note_id": visit.required("note_id"), "message": visit.required("message"), "tags": visit.body.get("tags")}
    return run.notes.setdefault(note["note_id"], note)


def _step(visit: Visit) -> Any:
    try:
        told = msgspec.convert(visit.body, _steps.Told)
    except msgspec.ValidationError as error:
        raise invalid("body", str(error)) from error
    return _steps.keep(visit.book, visit.book.execution(visit.names["execution"]), told)


def _step_page(visit: Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    return _steps.page(run, int(visit.query.get("after", 0)), int(visit.query.get("limit", 200)))


def _ask(visit: Visit) -> Any:
    _filled.check_members(visit.body.get("form"))
    try:
        ask = msgspec.convert(visit.body, Ask)
    except msgspec.ValidationError as error:
        raise invalid("body", str(error)) from error
    _check(ask)
    run = visit.book.execution(visit.names["execution"], visit.names.get("node"))
    return _views.asked(visit.book.ask(run, ask))


def _check(ask: Ask) -> None:
    for field, holds, rule in (*_identity(ask), *_limits(ask)):
        if not holds:
            raise invalid(field, rule)
    _filled.check(ask)


def _identity(ask: Ask) -> list[tuple[str, bool, str]]:
    named = ask.approval_request_id
    printable = not any(unicodedata.category(character) == "Cc" for character in named)
    return [
        ("approval_request_id", 1 <= len(named) <= 256 and printable, "1-256 characters, no control characters"),
        ("approval_request_id", not named.startswith("apr_"), "not beginning with apr_"),
        ("round", ask.round is None or ask.round >= 1, "an integer from 1 on"),
        ("on_expiry", ask.on_expiry in {"cancel", "resume"}, "cancel or resume"),
    ]


def _limits(ask: Ask) -> list[tuple[str, bool, str]]:
    hours, secret = ask.expires_in_hours, ask.callback_secret
    return [
        ("expires_in_hours", hours is None or 1 / 3600 <= hours <= 8760, "1 s to 8760 h"),
        ("callback_secret", secret is None or 16 <= len(secret) <= 256, "16-256 characters"),
        ("callback_url", _is_url(ask.callback_url), "an http(s) URL of at most 2048 characters"),
        ("approval_request_url", _is_url(ask.approval_request_url), "an http(s) URL of at most 2048 characters"),
        ("title", len(ask.title or "") <= 200, "at most 200 characters"),
        ("description", len(ask.description or "") <= 20_000, "at most 20000 characters"),
    ]


def _is_url(url: str | None) -> bool:
    return not url or (url.startswith(("http://", "https://")) and len(url) <= 2048)


def _status(visit: Visit) -> Any:
    longest = seconds(visit.query.get("wait", 0))
    found = visit.book.rounds(visit.names["execution"], visit.query.get("approval_request_id"))
    if not found:
        raise Refusal("no_approval_request", "this execution has not asked that")
    visit.book.execution(visit.names["execution"], visit.names.get("node"))
    approval = found[-1]
    return Hold(lambda: approval.final, lambda: _views.status(visit.book, approval), longest)


def _wait(visit: Visit) -> Any:
    if not 1 <= len(ids := visit.required("approval_ids")) <= 10_000:
        raise invalid("approval_ids", "1 to 10000 of them")
    known = [visit.book.approvals[each] for each in ids if each in visit.book.approvals]

    def show() -> Any:
        return {"approvals": [_views.status(visit.book, each) for each in known if each.final]}

    return Hold(lambda: any(each.final for each in known), show, seconds(visit.required("wait")))


def _approvals(visit: Visit) -> Any:
    wanted = {k: v for k, v in visit.query.items() if k in {"status", "node_id", "execution_id", "approval_request_id"}}
    shown = [_views.approval(visit.book, each) for each in visit.book.approvals.values()]
    found = [each for each in shown if all(each[name] == value for name, value in wanted.items())]
    if "q" in visit.query:
        found = [each for each in found if _mentions(each, visit.query["q"])]
    if visit.query.get("order") == "deadline":
        found.sort(key=lambda each: (each["expires_at"], each["approval_id"]))
    else:
        found.reverse()
    return _page(visit, "approvals", found)


def _mentions(shown: dict[str, Any], text: str) -> bool:
    fields = ("title", "approval_request_id", "execution_id", "approval_id")
    return any(text.lower() in (shown[field] or "").lower() for field in fields)


def _page(visit: Visit, name: str, found: list[Any]) -> dict[str, Any]:
    begin, size = int(visit.query.get("cursor", 0)), int(visit.query.get("limit", 50))
    end = begin + size
    return {name: found[begin:end], "next_cursor": str(end) if end < len(found) else None}


def _approval(visit: Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    return {**_views.approval(visit.book, approval), "history": approval.history}


def _callback(visit: Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    approval.ask.callback_url = visit.required("callback_url")
    approval.ask.callback_secret = visit.body.get("callback_secret")
    return _views.approval(visit.book, approval)


def _decision(visit: Visit) -> Any:
    return _decide(visit, visit.book.approval(visit.names["approval"]))


def _answer_execution(visit: Visit) -> Any:
    run = visit.book.execution(visit.names["execution"])
    found = visit.book.rounds(run.execution_id, visit.body.get("approval_request_id"))
    pending = [each for each in found if not each.final]
    if not found:
        raise Refusal("no_approval_request", "this execution has not asked that")
    if len(pending) > 1:
        raise Refusal("ambiguous_request_id", "several are pending; name one")
    return _decide(visit, (pending or found)[-1])


def _decide(visit: Visit, approval: Kept) -> Any:
    seen = (visit.body.get("payload_digest", approval.ask.digest), visit.body.get("round", approval.round))
    if seen != (approval.ask.digest, approval.round):
        raise Refusal("approval_changed", "another payload or round stands")
    feedback = visit.body.get("feedback") or visit.body.get("reason") or ""
    filled = partial(_filled.response_to, approval.ask, visit.body.get("values"), visit.body.get("response"))
    applied = visit.book.decide(approval, str(visit.required("decision")), feedback, filled)
    return _views.decided(visit.book, approval, applied=applied)


def _withdraw(visit: Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    visit.book.settle(approval, "withdrawn")
    return _views.approval(visit.book, approval)


def _expire(visit: Visit) -> Any:
    approval = visit.book.approval(visit.names["approval"])
    visit.book.settle(approval, "expired")
    return _views.approval(visit.book, approval)


def _nothing(name: str) -> Handler:
    return lambda _: {name: [], "next_cursor": None}


def _no_delivery(_: Visit) -> Any:
    raise Refusal("delivery_not_found", "nothing is delivered in memory")


def _no_webhook(_: Visit) -> Any:
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
    ("POST", "/executions/{execution}/steps", _step),
    ("GET", "/executions/{execution}/steps", _step_page),
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
    *_node_handlers.ROUTES,
    *_question_handlers.ROUTES,
)
# What only the process says that has the run.
_OWN = (_report, _note, _step, _step_page, _ask, _callback, _expire)
