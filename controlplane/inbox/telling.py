"""What an open page is told, as server-sent events: drawn once for all pages, so nothing in them is one viewer's."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.feedback import FeedbackStatus, Question
from controlplane.domain.telling import Counts
from controlplane.inbox import present
from controlplane.runtime import Resolved
from controlplane.storage.standing import Standing

# An event and not a comment: pages notice a connection that died by the lack of it.
STILL_HERE = b"event: beat\ndata: {}\n\n"
CLOSED = {
    FeedbackStatus.ANSWERED: "Answered.",
    FeedbackStatus.EXPIRED: "Expired, nobody answered.",
    FeedbackStatus.CANCELLED: "Withdrawn: nobody waits for an answer any more.",
}


class Pen:
    """Draws what is told.

    Args:
        card: draws the card of a short-lived question.
    """

    def __init__(self, card: Callable[[Question], str]) -> None:
        """Nothing drawn yet."""
        self._card = card

    def draw(self, what: Any) -> bytes:
        """One event as it is sent."""
        if isinstance(what, Standing):
            return event("settled", settled(what)) if what.final else event("asked", asked(what))
        if isinstance(what, Question):
            return event("feedback_asked", asked_now(what, self._card(what)))
        if isinstance(what, Resolved):
            return event("feedback_resolved", closed(what))
        if isinstance(what, Counts):
            return event("counts", what)
        raise TypeError(type(what).__name__)


def event(name: str, data: object) -> bytes:
    """One server-sent event; JSON has no line breaks of its own."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(data))


def hello(now: datetime, waiting: int, questions: list[str]) -> bytes:
    """The first event: the time, how many wait, and which short-lived questions are open."""
    data = {"now": now, "waiting": waiting, "feedback": len(questions), "questions": questions}
    return event("hello", data)


def settled(standing: Standing) -> dict[str, Any]:
    """An approval's end: what, by whom if it was a person, when, and that in words."""
    by = standing.by if standing.by_kind in present.PEOPLE else None
    return {
        "approval_id": standing.approval_id,
        "status": standing.status,
        "by": by,
        "at": _moment(standing.decided_at),
        "words": ending(standing, by),
    }


def ending(standing: Standing, by: str | None) -> str:
    """An approval's end in words; what nobody answered is nobody's verdict."""
    if standing.status is ApprovalStatus.EXPIRED:
        return "Expired, nobody answered"
    verdict = present.verdict_of(standing.status, question=standing.question)
    return verdict if by is None else f"{verdict} by {by}"


def asked(standing: Standing) -> dict[str, Any]:
    """An approval that waits from now on."""
    return {"approval_id": standing.approval_id, "expires_at": _moment(standing.expires_at)}


def asked_now(question: Question, card: str) -> dict[str, Any]:
    """A short-lived question with its card."""
    return {"unique_id": question.unique_id, "expires_at": _moment(question.expires_at), "html": card}


def closed(resolved: Resolved) -> dict[str, Any]:
    """A short-lived question's end, and that in words."""
    outcome = resolved.outcome
    return {"unique_id": resolved.unique_id, "outcome": outcome, "words": CLOSED[outcome]}


def is_about_questions(what: object) -> bool:
    """Whether something is only for those who may answer short-lived questions."""
    return isinstance(what, Question | Resolved) or (isinstance(what, Counts) and what.feedback is not None)


def _moment(at: datetime | None) -> str | None:
    return None if at is None else present.stamp(at.astimezone(UTC))
