"""People answer short-lived questions here, also with clients that were written for the original of these paths."""

from datetime import datetime
from typing import Annotated, Any, Literal

from litestar import Request, get, post
from msgspec import Meta, Struct

from controlplane.domain.answers import Kind
from controlplane.domain.feedback import Question
from controlplane.edge import bodies
from controlplane.edge.deps import looking, operator, transaction
from controlplane.services import feedback as service

SUBMIT_LIMIT = 16 * 1024

SubmissionId = Annotated[str, Meta(min_length=1, max_length=128)]


class FeedbackSubmitIn(Struct, kw_only=True):
    """An answer to a question; with a submission_id it can be sent again when its reply was lost."""

    unique_id: str
    response: str
    submission_id: SubmissionId | None = None

    def __repr__(self) -> str:
        """Without the answer."""
        return f"FeedbackSubmitIn(unique_id={self.unique_id!r})"


class FeedbackSubmitOut(Struct):
    """The answer was sealed for whoever asked, now or when it was sent before."""

    unique_id: str
    status: Literal["success"]
    message: str


class FeedbackQuestionOut(Struct):
    """A question that waits for a person."""

    unique_id: str
    message_for_user: str
    kind: Kind
    options: list[str] | None
    allow_feedback: bool
    yes_label: str | None
    no_label: str | None
    context: str
    session_id: str | None
    created_at: datetime
    expires_at: datetime

    def __repr__(self) -> str:
        """Without its words."""
        return f"FeedbackQuestionOut(unique_id={self.unique_id!r})"


class FeedbackPendingOut(Struct):
    """Every question that waits, oldest first."""

    requests: list[FeedbackQuestionOut]


@post("/api/human-feedback/submit", status_code=200, opt={"takes": FeedbackSubmitIn, "refuses": [410]})
async def submit_feedback(request: Request[Any, Any, Any]) -> FeedbackSubmitOut:
    """Answer a question; it is sealed for the call that waits and kept in no other form."""
    body = await bodies.take(request, FeedbackSubmitIn, limit=SUBMIT_LIMIT)
    async with transaction(request) as conn:
        await service.submit(
            conn, body.unique_id, body.response, submission_id=body.submission_id, actor=operator(request)
        )
    return FeedbackSubmitOut(body.unique_id, "success", "Response submitted")


@get("/api/human-feedback/pending")
async def pending_feedback(request: Request[Any, Any, Any]) -> FeedbackPendingOut:
    """The questions that wait for a person, oldest first; never an answer."""
    async with looking(request) as conn:
        questions = await service.pending(conn)
    return FeedbackPendingOut([_question_out(question) for question in questions])


def _question_out(question: Question) -> FeedbackQuestionOut:
    choices = question.choices
    return FeedbackQuestionOut(
        unique_id=question.unique_id,
        message_for_user=question.message,
        kind=question.kind,
        options=None if choices.options is None else list(choices.options),
        allow_feedback=question.allow_feedback,
        yes_label=choices.yes_label,
        no_label=choices.no_label,
        context=question.context,
        session_id=question.session_id,
        created_at=question.created_at,
        expires_at=question.expires_at,
    )
