"""The cards of short-lived questions: on top of the list, in the live stream, and alone while one is answered."""

from typing import Any

from litestar import Request

from controlplane.domain.feedback import Question
from controlplane.domain.keys import Scope
from controlplane.edge.deps import AnyRequest, runtime_of
from controlplane.inbox.deps import viewer_of
from controlplane.inbox.rendering import fragment

SUBMISSION_PREFIX = "sub_"


def questions_for(request: Request[Any, Any, Any]) -> list[Question]:
    """The short-lived questions that a page shows: what is pending, oldest first; none to those who may not answer."""
    return runtime_of(request).board.questions() if viewer_of(request).may(Scope.REVIEW) else []


def fresh(request: AnyRequest) -> str:
    """A name for one answer from one page, under which it may be sent again."""
    return runtime_of(request).new_id(SUBMISSION_PREFIX)


def card(request: AnyRequest, question: Question) -> str:
    """A question's card with nothing of the viewer in it: the script adds the form's token and the answer's name."""
    return fragment(request, "_feedback_card.html", viewer=None, card=question, now=question.created_at, submission="")
