"""Short-lived questions over the book: asked, answered, sealed to their asker's key, and gone once that was read."""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from holdshort._choices import NO_WORDS, YES_WORDS, Choices, check_question, checked_choices
from holdshort._errors import InvalidField
from holdshort._seals import seal
from holdshort.testing._book import Book, Refusal
from holdshort.testing._visits import invalid

ASKED = "blocking_human_feedback"
_KEPT = timedelta(hours=1)
_READABLE = timedelta(seconds=30)


class Told(msgspec.Struct, kw_only=True):
    """The body of a question."""

    unique_id: str
    message_for_user: str
    public_key: str
    kind: str | None = None
    options: list[str] | None = None
    yes_label: str | None = None
    no_label: str | None = None
    timeout_seconds: float = 300
    session_id: str | None = None
    execution_id: str | None = None


class Asked(msgspec.Struct, kw_only=True):
    """A question as it is remembered; what was asked and answered is forgotten when it ends and is read."""

    told: Told
    choices: Choices
    created_at: datetime
    expires_at: datetime
    status: str = "pending"
    sealed: tuple[str, str] | None = None
    read_at: datetime | None = None
    submission_id: str | None = None
    ended_at: datetime | None = None

    @property
    def pending(self) -> bool:
        """True while it may be answered."""
        return self.status == "pending"


def ask(book: Book, told: Told) -> Asked:
    """Ask, or join the question that is open under the same id and key."""
    choices = _checked(told)
    asked: Asked | None = book.questions.get(told.unique_id)
    if asked is not None and asked.ended_at is not None and book.now >= asked.ended_at + _KEPT:
        asked = None
    if asked is not None:
        if not asked.pending:
            raise Refusal("request_id_used", "a question under this id has ended; use a new one")
        if asked.told != told:
            raise Refusal("duplicate_request", "another question is open under this id")
        return asked
    until = book.now + timedelta(seconds=told.timeout_seconds)
    asked = Asked(told=told, choices=choices, created_at=book.now, expires_at=until)
    book.questions[told.unique_id] = asked
    _say(book, ASKED, as_event(asked))
    return asked


def named(book: Book, unique_id: str) -> Asked:
    """The question under an id."""
    if unique_id not in book.questions:
        raise Refusal("request_not_found", "no question has this unique_id")
    found: Asked = book.questions[unique_id]
    return found


def pending(book: Book) -> list[Asked]:
    """What waits for a person, oldest first."""
    return [asked for asked in book.questions.values() if asked.pending]


def submit(book: Book, unique_id: str, response: str, submission_id: str | None = None) -> Asked:
    """Answer a question as a person; the same submission again is the same answer."""
    asked = named(book, unique_id)
    if submission_id is not None and asked.submission_id == submission_id:
        return asked
    if asked.status == "answered":
        raise Refusal("already_answered", "another answer was first")
    _check_alive(asked)
    answer = answer_to(asked.choices, response)
    asked.sealed = seal(asked.told.public_key, unique_id, answer)
    asked.submission_id = submission_id
    _end(book, asked, "answered")
    return asked


def read(book: Book, asked: Asked) -> dict[str, Any]:
    """How a question stands for its asker."""
    _check_alive(asked)
    if asked.pending:
        return {"outcome": "pending"}
    asked.read_at = asked.read_at or book.now
    if asked.sealed is None or book.now >= asked.read_at + _READABLE:
        asked.sealed = None
        raise Refusal("answer_taken", "the answer was read and is gone")
    enc, ct = asked.sealed
    return {"outcome": "answered", "sealed": {"enc": enc, "ct": ct}}


def end(book: Book, unique_id: str) -> Asked:
    """Acknowledge the answer of a question, or withdraw it."""
    asked = named(book, unique_id)
    asked.sealed = None
    if asked.pending:
        _end(book, asked, "cancelled")
    return asked


def expire(book: Book) -> None:
    """End the questions whose time is up."""
    for asked in pending(book):
        if asked.expires_at <= book.now:
            _end(book, asked, "expired")


def shown(asked: Asked) -> dict[str, Any]:
    """A question as people are shown it."""
    seconds = round((asked.expires_at - asked.created_at).total_seconds())
    kind = asked.choices.kind
    return {
        "unique_id": asked.told.unique_id,
        "message_for_user": asked.told.message_for_user,
        "kind": kind,
        "options": asked.choices.options,
        "allow_feedback": kind in {"text", "secret"},
        "yes_label": asked.choices.yes_label,
        "no_label": asked.choices.no_label,
        "context": f"This request expires in {seconds} seconds.",
        "session_id": asked.told.session_id,
        "created_at": asked.created_at,
        "expires_at": asked.expires_at,
    }


def as_event(asked: Asked) -> dict[str, Any]:
    """A question as the live stream tells of it."""
    known = shown(asked)
    named = {"request_id": known.pop("unique_id"), "question": known.pop("message_for_user")}
    return {**named, **known}


def answer_to(choices: Choices, response: str) -> str:
    """The answer that a person's text is; what is unclear is refused."""
    if not response.strip():
        raise Refusal("invalid_answer", "the answer is empty")
    if choices.kind in {"text", "secret"}:
        return response
    if choices.kind == "multiple_choice":
        found = _label(choices.options or (), response)
    else:
        found = _yes_or_no(choices, response)
    if found is None:
        raise Refusal("invalid_answer", "this is none of what may be answered")
    return found


def _yes_or_no(choices: Choices, response: str) -> str | None:
    labels = {label: word for label, word in ((choices.yes_label, "yes"), (choices.no_label, "no")) if label}
    found = _label(tuple(labels), response)
    if found is not None:
        return labels[found]
    word = response.strip().lower() if response.strip().isascii() else ""
    return "yes" if word in YES_WORDS else "no" if word in NO_WORDS else None


def _label(labels: tuple[str, ...], response: str) -> str | None:
    meant = response.strip()
    same = [label for label in labels if label.strip() == meant]
    alike = same or [label for label in labels if label.strip().casefold() == meant.casefold()]
    return alike[0] if len(alike) == 1 else None


def _checked(told: Told) -> Choices:
    try:
        check_question(told.unique_id, told.message_for_user, told.timeout_seconds)
        choices = checked_choices(told.kind, told.options, told.yes_label, told.no_label)
    except InvalidField as fault:
        raise Refusal("invalid_field", fault.message, errors=fault.details["errors"]) from fault
    try:
        seal(told.public_key, told.unique_id, "something")
    except ValueError as fault:
        raise invalid("public_key", "must be an X25519 public key in base64") from fault
    return choices


def _check_alive(asked: Asked) -> None:
    if asked.status == "expired":
        raise Refusal("request_expired", "the question's time is up")
    if asked.status == "cancelled":
        raise Refusal("request_cancelled", "the question was withdrawn")


def _end(book: Book, asked: Asked, status: str) -> None:
    asked.status, asked.ended_at = status, book.now
    _say(book, "human_feedback_resolved", {"request_id": asked.told.unique_id, "outcome": status})


def _say(book: Book, kind: str, data: dict[str, Any]) -> None:
    book.question_events.append({"id": "", "type": kind, "data": data})
