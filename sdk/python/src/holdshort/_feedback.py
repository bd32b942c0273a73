"""A short-lived question from its asking to its one answer, without I/O; both clients send what this says."""

import secrets
from typing import Any

from msgspec import Struct

from holdshort import _feedback_routes
from holdshort._choices import Choices, check_question
from holdshort._core import Call
from holdshort._errors import HoldshortError, NotFound
from holdshort._feedback_errors import FeedbackEnded, FeedbackExpired, RequestIdUsed, UnreadableAnswer
from holdshort._feedback_routes import FeedbackAnswer, FeedbackAsked, FeedbackEnd, Sealed
from holdshort._seals import Lock

# For the last word, which withdraws the question or acknowledges its answer: whoever waits for it wants to go on.
END_S = 2.0
_HOLD_S = 55.0
_PACE_S = 1.0
# What the server may need to say that the time is up.
_GRACE_S = 15.0


class Asked(Struct, frozen=True, kw_only=True):
    """A question as its asker means it.

    Raises:
        InvalidField: a field breaks a rule of the control plane.
    """

    unique_id: str
    message_for_user: str
    timeout_seconds: float
    choices: Choices
    execution_id: str | None = None

    def __post_init__(self) -> None:
        check_question(self.unique_id, self.message_for_user, self.timeout_seconds)


class Waiting:
    """One question: asked, waited for and opened into `answer`. The key is made here and is nowhere else.

    Args:
        asked: the question.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._lock = Lock()
        self._registered = False
        self._stands = False
        self._joined_anew = False
        self._used: RequestIdUsed | None = None
        self._until: float | None = None
        self._sent_at = 0.0
        self.answer: str | None = None

    def next(self, now: float) -> Call[Any]:
        """The next call to send, while there is no answer."""
        self._sent_at = now
        if self._used is not None:
            return _feedback_routes.feedback_answer(self._asked.unique_id)
        if self._registered:
            return _feedback_routes.feedback_answer(self._asked.unique_id, wait=_HOLD_S)
        return self._asking()

    def patience(self, own: float | None, now: float) -> float | None:
        """Seconds to go on sending it: the client's own while the question is asked, then as long as it may be open."""
        if self._until is None:
            return self._asked.timeout_seconds if own is None else own
        return max(own or 0.0, self._until - now)

    def took(self, said: FeedbackAsked | FeedbackAnswer | None, now: float) -> float:
        """Take a reply; the seconds to pause before the next call.

        Raises:
            FeedbackExpired: it is open for longer than it may be.
            UnreadableAnswer: the answer was not sealed to this question.
        """
        if isinstance(said, FeedbackAsked):
            self._registered = self._stands = True
            self._until = now + self._asked.timeout_seconds + _GRACE_S
            return 0.0
        if said is None:
            return 0.0
        if said.outcome == "pending":
            if self._until is not None and now > self._until:
                raise FeedbackExpired("the question's time has passed, and the control plane still calls it pending")
            # A control plane that stops answers at once; that must not become a busy loop.
            return max(0.0, _PACE_S - (now - self._sent_at))
        self.answer = self._opened(said)
        self._stands = True
        return 0.0

    def _opened(self, said: FeedbackAnswer) -> str:
        sealed = said.sealed or Sealed("", "")
        try:
            return self._lock.open(self._asked.unique_id, sealed.enc, sealed.ct)
        except UnreadableAnswer:
            if self._used is not None:
                raise self._used from None
            raise

    def refused(self, error: HoldshortError) -> None:
        """Go on after a refusal that another call mends; each is tried once.

        A control plane that knows nothing of the question is asked again. An id that is used up may be this very
        question's, answered while the reply to its asking was lost: then the answer opens with this key alone.

        Raises:
            HoldshortError: it is any other one.
        """
        if self._used is not None:
            raise self._used
        if isinstance(error, FeedbackEnded):
            self._stands = False
        if isinstance(error, RequestIdUsed) and not self._registered:
            self._used = error
        elif isinstance(error, NotFound) and self._registered and not self._joined_anew:
            self._registered, self._joined_anew = False, True
        else:
            raise error

    def end(self) -> Call[FeedbackEnd] | None:
        """Forget the key, and the last call to send: it acknowledges the answer, or withdraws the question.

        None when nothing of this question is there: under its id may stand another call's.
        """
        self._lock.forget()
        return _feedback_routes.end_feedback(self._asked.unique_id) if self._stands else None

    def _asking(self) -> Call[FeedbackAsked]:
        asked = self._asked
        return _feedback_routes.ask_feedback(
            asked.unique_id,
            asked.message_for_user,
            self._lock.public_key,
            timeout_seconds=asked.timeout_seconds,
            kind=asked.choices.kind,
            options=asked.choices.options,
            yes_label=asked.choices.yes_label,
            no_label=asked.choices.no_label,
            execution_id=asked.execution_id,
        )


def unique_id(word: str = "question") -> str:
    """An id that no other question has: the word, a dash and 16 random characters.

    Args:
        word: to know it by, 1-100 of `A-Z a-z 0-9 . _ ~ : -`.
    """
    return f"{word}-{secrets.token_hex(8)}"
