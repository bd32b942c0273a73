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

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer
from controlplane.domain.errors import ApprovalChanged
from controlplane.inbox.approval import Looked, Typed, draw, look, path_approval
from controlplane.inbox.deps import actor_of, runtime_of, transaction
from controlplane.inbox.forms import form_of
from controlplane.inbox.rendering import link, part
from controlplane.services import approvals as service
from controlplane.services.approvals import SeenByPerson

LIMIT = 1024 * 1024
MOST_WORDS = 20_000
_VERDICTS = {
    status.value: status
    for status in (ApprovalStatus.APPROVED, ApprovalStatus.REJECTED, ApprovalStatus.REQUEST_CHANGES)
}


@post("/inbox/{approval_id:str}/decision", status_code=200, include_in_schema=False)
async def decide(request: Request[Any, Any, Any], approval_id: FromPath[str]) -> Response[Any]:
    """Take a verdict; the page with its outcome follows, or the same page with what is still to be said.

    Raises:
        ApprovalNotFound: no such approval.
    """
    named = path_approval(approval_id)
    form = await form_of(request, limit=LIMIT)
    async with transaction(request) as conn:
        looked = await look(conn, named)
        typed = _typed(form)
        verdict = _VERDICTS.get(form.get("verdict", ""))
        if looked.shown.final:
            return _stands(request, looked, typed, verdict)
        typed = _checked(form, looked, typed, verdict)
        if verdict is None or typed.fault is not None or typed.armed is not None:
            return draw(request, looked, typed, status=200 if typed.fault is None else 422)
        answer = Answer(status=verdict, actor=actor_of(request), feedback=typed.feedback)
        seen = SeenByPerson(payload_digest=looked.shown.payload_digest, round=looked.shown.round)
        try:
            await service.decide(conn, named, answer, seen=seen, new_id=runtime_of(request).new_id)
        except ApprovalChanged:
            return draw(request, await look(conn, named), typed, status=409)
        return _stands(request, await look(conn, named), typed, verdict)


def _stands(request: Request[Any, Any, Any], looked: Looked, typed: Typed, verdict: ApprovalStatus | None) -> Response[Any]:
    """What an answer came to: the page with the outcome, or for whoever came second what stands and their own words."""
    if looked.shown.status is verdict:
        return Redirect(link(request, f"/inbox/{part(looked.shown.approval_id)}"), status_code=303)
    return draw(request, looked, typed, status=409)


def _typed(form: Mapping[str, str]) -> Typed:
    return Typed(
        feedback=form.get("feedback", "").replace("\r\n", "\n").strip(),
        read=form.get("read") == "yes",
        seen_digest=form.get("digest"),
    )


def _checked(form: Mapping[str, str], looked: Looked, typed: Typed, verdict: ApprovalStatus | None) -> Typed:
    from msgspec.structs import replace

    if verdict is not None and form.get("confirmed") != verdict:
        return replace(typed, armed=verdict.value)
    return typed
