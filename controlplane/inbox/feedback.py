"""Answering a short-lived question: the answer is handed on to whoever asked, and stands in nothing sent back."""

import re
from typing import Any

from litestar import Request, Response, get, post
from litestar.params import FromPath
from litestar.response import Redirect

from controlplane.domain.answers import Kind
from controlplane.domain.errors import BodyTooLarge, FieldFault, HoldshortError, RequestNotFound
from controlplane.domain.feedback import FeedbackStatus, Question
from controlplane.domain.ids import check_name
from controlplane.edge import errors
from controlplane.edge.deps import AnyRequest
from controlplane.inbox.cards import fresh
from controlplane.inbox.deps import actor_of, looking, transaction
from controlplane.inbox.forms import form_of
from controlplane.inbox.guard import is_by_script
from controlplane.inbox.rendering import link, page, part
from controlplane.services import feedback as service
from controlplane.storage import clock, feedback

MOST_BYTES = 16 * 1024
# In a form each byte may take three, and its other fields a little.
LIMIT = 3 * MOST_BYTES + 4 * 1024
_SUBMISSION = re.compile(r"[A-Za-z0-9_-]{1,64}")


@get("/inbox/feedback/{unique_id:str}", include_in_schema=False)
async def show_question(request: Request[Any, Any, Any], unique_id: FromPath[str]) -> Response[str]:
    """One short-lived question by itself, or how it ended.

    Raises:
        RequestNotFound: nothing is known under this id.
    """
    return await _shown(request, _named(unique_id))


@post("/inbox/feedback/{unique_id:str}/answer", status_code=200, include_in_schema=False)
async def answer_question(request: Request[Any, Any, Any], unique_id: FromPath[str]) -> Response[Any]:
    """Hand a person's answer on.

    A script is answered with a document; without it the question's own page follows, which says that it was answered,
    or shows the card again with what was typed, unless that is secret.

    Raises:
        RequestNotFound: nothing is known under this id.
    """
    named = _named(unique_id)
    form = await form_of(request, limit=LIMIT)
    # In forms a line ends with CR and LF, whatever was typed.
    response = form.get("response", "").replace("\r\n", "\n")
    try:
        submission = _submission(form.get("submission_id"))
        if len(response.encode()) > MOST_BYTES:
            raise BodyTooLarge(f"An answer has at most {MOST_BYTES:,} bytes; shorten it.")
        async with transaction(request) as conn:
            await service.submit(conn, named, response, submission_id=submission, actor=actor_of(request))
    except HoldshortError as refusal:
        if is_by_script(request) or type(refusal) not in errors.STATUS:
            raise
        return await _shown(request, named, refusal=refusal, typed=response)
    if is_by_script(request):
        return Response({"unique_id": named, "status": "success"})
    return Redirect(link(request, f"/inbox/feedback/{part(named)}"), status_code=303)


async def _shown(
    request: AnyRequest, unique_id: str, *, refusal: HoldshortError | None = None, typed: str = ""
) -> Response[str]:
    async with looking(request) as conn:
        now = await clock.now(conn)
        found: list[Question] = await feedback.pending(conn, [unique_id])
        ended = {} if found else await feedback.endings(conn, [unique_id])
    if not found and not ended:
        raise RequestNotFound
    question = found[0] if found else None
    may_show = question is not None and question.kind is Kind.TEXT
    return page(
        request,
        "feedback.html",
        status=200 if refusal is None else int(errors.STATUS[type(refusal)]),
        card=question,
        outcome=ended.get(unique_id, FeedbackStatus.PENDING),
        fault=None if refusal is None else refusal.message,
        typed=typed if may_show else "",
        submission=fresh(request),
        now=now,
    )


def _submission(sent: str | None) -> str | None:
    if sent and not _SUBMISSION.fullmatch(sent):
        raise FieldFault("submission_id", "must be 1 to 64 letters, digits, _ or -")
    return sent or None


def _named(unique_id: str) -> str:
    try:
        return check_name("unique_id", unique_id)
    except FieldFault:
        raise RequestNotFound from None
