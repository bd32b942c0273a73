"""The routes of short-lived questions: arguments in, a Call out. Both clients are made from these."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from holdshort._core import Call, body, path, query
from holdshort._wire import Event

_SUBMIT = "/api/human-feedback/submit"
_EVENTS = "/api/human-feedback/events"
_PENDING = "/api/human-feedback/pending"


class FeedbackAsked(Struct, frozen=True, kw_only=True):
    """The answer to a short-lived question's asking: it is open until `expires_at`."""

    unique_id: str
    created_at: datetime | None = None
    expires_at: datetime | None = None


class Sealed(Struct, frozen=True):
    """A sealed answer, in base64: `enc` the seal's public key, `ct` the answer that only its asker can open."""

    enc: str
    ct: str


class FeedbackAnswer(Struct, frozen=True, kw_only=True):
    """How a short-lived question stands: `outcome` is answered, with `sealed`, or pending."""

    outcome: str
    sealed: Sealed | None = None


class FeedbackQuestion(Struct, frozen=True, kw_only=True):
    """A short-lived question that waits for a person; `context` says how long it still does.

    `kind` is text, yes_no, multiple_choice or secret, and `allow_feedback` says that it takes text.
    """

    unique_id: str
    message_for_user: str
    kind: str = "text"
    options: list[str] | None = None
    yes_label: str | None = None
    no_label: str | None = None
    allow_feedback: bool = False
    context: str | None = None
    session_id: str | None = None
    created_at: datetime | None = None
    expires_at: datetime | None = None


class FeedbackPage(Struct, frozen=True):
    """The short-lived questions that wait for a person, oldest first; never an answer."""

    requests: list[FeedbackQuestion]


class Submitted(Struct, frozen=True, kw_only=True):
    """The answer to an answer: it was taken, now or under the same submission_id before."""

    unique_id: str
    status: str
    message: str = ""


class FeedbackEnd(Struct, frozen=True, kw_only=True):
    """How a short-lived question ended that was let go of: answered, expired or cancelled."""

    unique_id: str
    outcome: str


def ask_feedback(  # noqa: PLR0913  # what is said of a question, each by its name
    unique_id: str,
    message_for_user: str,
    public_key: str,
    *,
    timeout_seconds: float = 300,
    kind: str | None = None,
    options: Sequence[str] | None = None,
    yes_label: str | None = None,
    no_label: str | None = None,
    session_id: str | None = None,
    execution_id: str | None = None,
) -> Call[FeedbackAsked]:
    """Ask a short-lived question whose answer is sealed to a key; `human_feedback` does all of it.

    The same again, with the same key, joins the question that is open. Somebody must wait for the answer with
    `feedback_answer`, or the question is withdrawn after 15 s.

    Args:
        unique_id: 1-128 of `A-Z a-z 0-9 . _ ~ : -`, new for each question.
        message_for_user: the question, 1-4,000 characters.
        public_key: X25519, 32 bytes in base64; whoever has the private key can open the answer.
        timeout_seconds: 5-1800.
        kind: text, yes_no, multiple_choice or secret; multiple_choice where options are given, else text.
        options: of multiple_choice, 1-20 distinct texts of 1-200 characters.
        yes_label: of yes_no.
        no_label: of yes_no.
        session_id: of whatever the question belongs to, shown with it.
        execution_id: the run that asks.

    Raises:
        DuplicateRequest: another question is open under this id.
        RequestIdUsed: a question under this id ended within the last hour.
        InvalidField: a field breaks a rule.
        Unavailable: too many questions of this key are open.
    """
    members = body(
        unique_id=unique_id,
        message_for_user=message_for_user,
        kind=kind,
        options=None if options is None else list(options),
        yes_label=yes_label,
        no_label=no_label,
        timeout_seconds=timeout_seconds,
        session_id=session_id,
        execution_id=execution_id,
        public_key=public_key,
    )
    return Call(method="POST", path=path("human-feedback"), body=members, reads=FeedbackAsked)


def feedback_answer(unique_id: str, *, wait: float = 0) -> Call[FeedbackAnswer]:
    """The sealed answer to a question of this API key, or `pending` when `wait` (0-60) s have passed.

    Acknowledge it with `end_feedback`; without that it is gone 30 s after it was read.

    Raises:
        FeedbackExpired: its time passed unanswered.
        FeedbackCancelled: it was withdrawn, or nobody waited for it.
        AnswerTaken: the answer was read and is gone.
        NotFound: this key has asked no such question, or it ended more than an hour ago.
    """
    route = path("human-feedback", unique_id, "answer")
    return Call(method="GET", path=route, query=query(wait=f"{wait:g}"), hold=wait, reads=FeedbackAnswer)


def end_feedback(unique_id: str) -> Call[FeedbackEnd]:
    """Acknowledge an answer that was read, which lets go of it, or withdraw a question that is open.

    Raises:
        NotFound: this key has asked no such question, or it ended more than an hour ago.
    """
    return Call(method="DELETE", path=path("human-feedback", unique_id), reads=FeedbackEnd)


def submit_feedback(unique_id: str, response: str, *, submission_id: str | None = None) -> Call[Submitted]:
    """Answer a short-lived question as a person.

    Args:
        unique_id: of the question.
        response: the answer, at most 16 KiB: text, one of the options, or a yes or a no.
        submission_id: the same again is the same answer, so that it can be sent again when its reply was lost.

    Raises:
        InvalidAnswer: it is empty, none of the options, or neither a yes nor a no; the question stays open.
        AlreadyAnswered: another answer was first.
        FeedbackExpired: the question's time is up.
        FeedbackCancelled: nobody waits for the answer any more.
        NotFound: no question has this id.
    """
    members = body(unique_id=unique_id, response=response, submission_id=submission_id)
    return Call(method="POST", path=_SUBMIT, body=members, reads=Submitted)


def pending_feedback() -> Call[FeedbackPage]:
    """The short-lived questions that wait for a person, oldest first."""
    return Call(method="GET", path=_PENDING, reads=FeedbackPage)


def feedback_stream() -> Call[Event]:
    """The live stream of short-lived questions: first those that wait."""
    return Call(method="GET", path=_EVENTS, reads=Event)
