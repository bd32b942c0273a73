"""A person's answer: two presses of a button, the first arms a verdict and the second one confirms it.

Nothing is decided by one press, by looking, by a link or by Enter in a field. Without script the first press comes
back as the same page with the verdict armed; the script arms it in place and sends `confirmed` with the second. What
was typed is kept whatever becomes of it, and whoever comes late or second sees what stands.
"""

from collections.abc import Mapping
from typing import Any

from litestar import Request, Response, post
from litestar.params import FromPath
from litestar.response import Redirect
from msgspec.structs import replace

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer
from controlplane.domain.errors import ApprovalChanged, InvalidAnswer
from controlplane.edge.paths import path_approval
from controlplane.inbox import present_form
from controlplane.inbox.approval import Looked, Typed, draw, look, payload_of
from controlplane.inbox.deps import actor_of, runtime_of, transaction
from controlplane.inbox.forms import form_lists
from controlplane.inbox.rendering import link, part
from controlplane.services import approvals as service
from controlplane.services.approvals import SeenByPerson
from controlplane.storage.engine import Connection

# A payload that a person edits may have a quarter of a MiB, and each byte takes up to three in a form.
LIMIT = 1024 * 1024
MOST_WORDS = 20_000
VALUE = "value."
BACK = "back"
_VERDICTS = {
    status.value: status
    for status in (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED, ApprovalStatus.REQUEST_CHANGES)
}
_STATUS_OF_FAULT = {"changed": 409}


@post("/inbox/{approval_id:str}/decision", status_code=200, include_in_schema=False)
async def decide(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> Response[Any]:
    """Take a verdict; the page with its outcome follows, or the same page with what is still to be said.

    Raises:
        ApprovalNotFound: no such approval.
    """
    named = path_approval(approval_id)
    sent = await form_lists(request, limit=LIMIT, repeatable=lambda name: name.startswith(VALUE))
    form = {name: values[0] for name, values in sent.items()}
    verdict = _VERDICTS.get(form.get("verdict", ""))
    typed = _typed(form, sent)
    async with transaction(request) as conn:
        looked = await look(conn, named)
        typed = typed if looked.shown.final else _checked(form, looked, typed, verdict)
        if verdict is not None and not (looked.shown.final or typed.fault or typed.armed):
            looked, typed = await _apply(request, conn, looked, typed, verdict)
    if typed.fault is not None or not looked.shown.final:
        return _again(request, looked, typed)
    if looked.shown.status is verdict:
        return Redirect(link(request, f"/inbox/{part(named)}"), status_code=303)
    return draw(request, looked, replace(typed, late=form.get("verdict") or "none"), status=409)


async def _apply(
    request: Request[Any, Any, Any], conn: Connection, looked: Looked, typed: Typed, verdict: ApprovalStatus
) -> tuple[Looked, Typed]:
    """Decide, and look again at what stands then: this answer, or the one that was quicker."""
    shown = looked.shown
    answer = Answer(status=verdict, actor=actor_of(request), feedback=typed.feedback)
    seen = SeenByPerson(payload_digest=shown.payload_digest, round=shown.round)
    new_id = runtime_of(request).new_id
    try:
        values = present_form.values_of(shown, typed.values or {}) if verdict is ApprovalStatus.APPROVED else None
        await service.decide(conn, shown.approval_id, answer, seen=seen, new_id=new_id, values=values)
    except ApprovalChanged:
        typed = replace(typed, fault="changed")
    except InvalidAnswer as refusal:
        typed = replace(typed, fault="values", faults=present_form.faults_of(shown, refusal))
    return await look(conn, shown.approval_id), typed


def _typed(form: Mapping[str, str], sent: Mapping[str, list[str]]) -> Typed:
    return Typed(
        feedback=form.get("feedback", "").replace("\r\n", "\n").strip(),
        read=form.get("read") == "yes",
        values={name.removeprefix(VALUE): each for name, each in sent.items() if name.startswith(VALUE)},
        seen_digest=form.get("digest"),
    )


def _checked(form: Mapping[str, str], looked: Looked, typed: Typed, verdict: ApprovalStatus | None) -> Typed:
    """What was typed, with the first thing that keeps it from being an answer, or armed where only that is missing."""
    fault = _fault(form, looked, typed, verdict)
    if fault is not None or verdict is None:
        return replace(typed, fault=fault)
    if verdict is ApprovalStatus.APPROVED:
        try:
            present_form.values_of(looked.shown, typed.values or {})
        except InvalidAnswer as refusal:
            return replace(typed, fault="values", faults=present_form.faults_of(looked.shown, refusal))
    return typed if form.get("confirmed") == verdict else replace(typed, armed=verdict.value)


def _fault(form: Mapping[str, str], looked: Looked, typed: Typed, verdict: ApprovalStatus | None) -> str | None:
    shown = looked.shown
    if form.get("round") != str(shown.round) or form.get("digest") != (shown.payload_digest or ""):
        return "changed"
    if verdict is None:
        return None if form.get("verdict") == BACK else "verdict"
    if len(typed.feedback) > MOST_WORDS:
        return "long"
    if verdict is ApprovalStatus.REQUEST_CHANGES and not typed.feedback:
        return "comment"
    return _unread(looked, typed) if verdict is ApprovalStatus.APPROVED else None


def _unread(looked: Looked, typed: Typed) -> str | None:
    payload = payload_of(looked.shown)
    if payload.fault is not None:
        return "payload"
    return "unread" if payload.folds and not typed.read else None


def _again(request: Request[Any, Any, Any], looked: Looked, typed: Typed) -> Response[Any]:
    status = 200 if typed.fault is None else _STATUS_OF_FAULT.get(typed.fault, 422)
    return draw(request, looked, typed, status=status)
