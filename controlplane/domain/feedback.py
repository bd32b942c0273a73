"""Short-lived questions: of seconds to half an hour, whose answer goes to the one call that waits, nowhere else."""

from datetime import datetime, timedelta
from enum import StrEnum

from msgspec import Struct

from controlplane.domain.answers import Choices, Kind, check_choices
from controlplane.domain.errors import (
    AlreadyAnswered,
    AnswerTaken,
    FieldFault,
    RequestCancelled,
    RequestExpired,
)
from controlplane.domain.ids import check_name
from controlplane.domain.sealing import Sealed, check_public_key

MAX_MESSAGE = 4_000
LEAST_SECONDS = 5
MOST_SECONDS = 1_800
DEFAULT_SECONDS = 300
MOST_PENDING = 1_000
# How long a question stands without a sign of the call that waits for it, and how often that gives one.
WAITER_SECONDS = 15.0
RENEW_SECONDS = 5.0
# How long a sealed answer is kept after it was read, or after its deadline when it never was.
SEALED_SECONDS = 30.0
TOMBSTONE_SECONDS = 3_600.0


class FeedbackStatus(StrEnum):
    """The states of a short-lived question; all but `pending` are final and never change."""

    PENDING = "pending"
    ANSWERED = "answered"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Asking(Struct, frozen=True, kw_only=True):
    """A question as it is asked; its answer is sealed to `public_key`."""

    unique_id: str
    message: str
    choices: Choices
    public_key: bytes
    timeout_seconds: float = DEFAULT_SECONDS
    session_id: str | None = None
    execution_id: str | None = None

    def __repr__(self) -> str:
        """Without its words, so that no log or traceback shows them."""
        return f"Asking(unique_id={self.unique_id!r})"


class Question(Struct, frozen=True, kw_only=True):
    """A question that waits for a person, as people are shown it."""

    unique_id: str
    message: str
    choices: Choices
    session_id: str | None
    execution_id: str | None
    created_at: datetime
    expires_at: datetime

    @property
    def kind(self) -> Kind:
        """What it takes."""
        return self.choices.kind

    @property
    def allow_feedback(self) -> bool:
        """Whether it takes free text."""
        return self.kind in {Kind.TEXT, Kind.SECRET}

    @property
    def context(self) -> str:
        """How long it was asked for, as a sentence."""
        return f"This request expires in {round((self.expires_at - self.created_at).total_seconds())} seconds."

    def __repr__(self) -> str:
        """Without its words."""
        return f"Question(unique_id={self.unique_id!r})"


class Kept(Struct, frozen=True, kw_only=True):
    """A question as it stands, locked, and the database's clock then.

    `question` and `public_key` are there while it is pending, `sealed` from its answer until that was taken.
    `stops_clock`: the run that asks it works on nothing as long as it is pending.
    """

    unique_id: str
    owner: str | None
    status: FeedbackStatus
    expires_at: datetime
    waiter_until: datetime
    now: datetime
    question: Question | None = None
    public_key: bytes | None = None
    sealed: Sealed | None = None
    submission_id: str | None = None
    stops_clock: bool = False

    def __repr__(self) -> str:
        """Without its words."""
        return f"Kept(unique_id={self.unique_id!r}, status={self.status!r})"


def check(asking: Asking) -> Asking:
    """Return a question unchanged.

    Raises:
        FieldFault: its id, words, choices, time or key are none that can be asked; nothing is made to fit.
    """
    check_name("unique_id", asking.unique_id)
    if not 1 <= len(asking.message) <= MAX_MESSAGE or not asking.message.strip():
        raise FieldFault("message_for_user", f"must be a text of 1 to {MAX_MESSAGE} characters, not only spaces")
    if not LEAST_SECONDS <= asking.timeout_seconds <= MOST_SECONDS:
        raise FieldFault("timeout_seconds", f"must be a number of seconds from {LEAST_SECONDS} to {MOST_SECONDS}")
    check_choices(asking.choices)
    check_public_key(asking.public_key)
    return asking


def due(kept: Kept) -> FeedbackStatus | None:
    """How a pending question has ended by itself by now; None while it may be answered.

    Of its deadline and the moment from which nobody waits any more, the earlier counts.
    """
    if kept.status is not FeedbackStatus.PENDING or kept.now < min(kept.expires_at, kept.waiter_until):
        return None
    return FeedbackStatus.EXPIRED if kept.expires_at <= kept.waiter_until else FeedbackStatus.CANCELLED


def joins(kept: Kept, asking: Asking, owner: str | None) -> bool:
    """Whether a question that is pending is this very one, asked by the same key for the same pair of keys."""
    if kept.question is None or kept.owner != owner or kept.public_key != asking.public_key:
        return False
    standing = kept.question
    seconds = timedelta(seconds=asking.timeout_seconds)
    return (
        (standing.message, standing.choices) == (asking.message, asking.choices)
        and (standing.session_id, standing.execution_id) == (asking.session_id, asking.execution_id)
        and abs(standing.expires_at - standing.created_at - seconds) < timedelta(milliseconds=1)
    )


def check_open(status: FeedbackStatus) -> None:
    """Refuse an answer to a question that has ended.

    Raises:
        AlreadyAnswered, RequestExpired, RequestCancelled: it has, so.
    """
    if status is FeedbackStatus.ANSWERED:
        raise AlreadyAnswered
    check_alive(status)


def check_alive(status: FeedbackStatus) -> None:
    """Tell whoever asked that a question ended without an answer.

    Raises:
        RequestExpired, RequestCancelled: it did, so.
    """
    if status is FeedbackStatus.EXPIRED:
        raise RequestExpired
    if status is FeedbackStatus.CANCELLED:
        raise RequestCancelled


def taken(kept: Kept) -> Sealed:
    """The sealed answer of a question that was answered.

    Raises:
        AnswerTaken: it was read and is gone.
    """
    if kept.sealed is None:
        raise AnswerTaken
    return kept.sealed
