"""The ways in which a question to a person ends without an answer, and an answer that does not fit what was asked."""

from holdshort._errors import Conflict, HoldshortError, InvalidField, Refused


class FeedbackEnded(Refused):
    """A short-lived question is over, and there is no answer to be had. This is never an approval and never a no."""

    code = "request_ended"


class FeedbackExpired(FeedbackEnded):
    """The question's time passed, and nobody answered in it. This is never an approval; ask anew if it matters.

    Do not do what was asked about. Ask under a new unique_id, with a longer timeout_seconds or when somebody is there;
    what may wait for hours is a question for `ask` or `pause`.
    """

    code = "request_expired"


class FeedbackCancelled(FeedbackEnded):
    """The question was withdrawn, or nobody waited for its answer for 15 s. Ask anew under a new unique_id.

    It comes when another call withdrew it, and when the control plane was out of this program's reach for longer than
    a question is kept for one who does not ask for its answer. This is never an approval.
    """

    code = "request_cancelled"


class AnswerTaken(FeedbackEnded):
    """The answer was read once and is gone, as answers are. Ask anew under a new unique_id.

    It comes when the reply that held the answer was lost on its way, and 30 s passed until it was asked for again.
    """

    code = "answer_taken"


class DuplicateRequest(Conflict):
    """Another call asks under this unique_id now, and its answer goes to that one alone. Use a unique_id of your own.

    `holdshort.unique_id("otp")` makes one.
    """

    code = "duplicate_request"


class RequestIdUsed(Conflict):
    """A question under this unique_id ended within the last hour; its answer is nowhere to be had. Use a new one.

    `holdshort.unique_id("otp")` makes one. A run that is started again asks again, so its id must be new each time.
    """

    code = "request_id_used"


class AlreadyAnswered(Conflict):
    """Another answer to the short-lived question was first and stands. Nothing was changed."""

    code = "already_answered"


class InvalidAnswer(InvalidField):
    """What a person gave is no answer to what was asked; the question stays open. Correct it and send it again."""

    code = "invalid_answer"


class UnreadableAnswer(HoldshortError):
    """The answer was not sealed to this question, so it cannot be opened. Nothing was answered: ask anew.

    Use a new unique_id. When it happens again, something between this program and the control plane changes what they
    say to each other.
    """

    code = "unreadable_answer"


class ValuesInvalid(HoldshortError):
    """An approval's values do not fit the form that was asked with, so they are not handed over. Ask anew.

    The decision stands, under a form or values that are not those this code asks for: perhaps the code was changed
    while the question was open, or somebody decided without values. `details` holds the decision; treat it as no
    answer, and ask under another approval_request_id.
    """

    code = "values_invalid"
