"""A short-lived question is taken as it is or not at all, ends at the earlier of two moments, and shows no words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.domain import feedback
from controlplane.domain.answers import Choices, Kind
from controlplane.domain.errors import AlreadyAnswered, FieldFault, RequestCancelled, RequestExpired
from controlplane.domain.feedback import Asking, FeedbackStatus, Kept, Question
from controlplane.domain.sealing import Opener

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = Opener(b"k" * 32).public_key
WORDS = "Is it 482913?"


def asking(**fields: Any) -> Asking:
    known: dict[str, Any] = {"unique_id": "q", "message": WORDS, "choices": Choices(kind=Kind.TEXT), "public_key": KEY}
    return Asking(**(known | fields))


def question(**fields: Any) -> Question:
    known: dict[str, Any] = {"unique_id": "q", "message": WORDS, "choices": Choices(kind=Kind.TEXT)}
    times = {"created_at": NOW, "expires_at": NOW + timedelta(seconds=300)}
    return Question(**(known | {"session_id": None, "execution_id": None} | times | fields))


def kept(expires: float = 300, waiter: float = 15, **fields: Any) -> Kept:
    """A pending question whose deadline and whose waiter's end are so many seconds away."""
    times = {"expires_at": NOW + timedelta(seconds=expires), "waiter_until": NOW + timedelta(seconds=waiter)}
    known: dict[str, Any] = {"unique_id": "q", "owner": "k", "status": FeedbackStatus.PENDING, "now": NOW}
    return Kept(**(known | times | {"question": question(), "public_key": KEY} | fields))


@pytest.mark.parametrize("seconds", [5, 5.5, 300, 1800])
def test_times_within_the_limits_are_taken_as_they_are(seconds: float):
    assert feedback.check(asking(timeout_seconds=seconds)).timeout_seconds == seconds


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("timeout_seconds", {"timeout_seconds": 4.999}),
        ("timeout_seconds", {"timeout_seconds": 0}),
        ("timeout_seconds", {"timeout_seconds": -1}),
        ("timeout_seconds", {"timeout_seconds": 1800.001}),
        ("timeout_seconds", {"timeout_seconds": float("nan")}),
        ("timeout_seconds", {"timeout_seconds": float("inf")}),
        ("unique_id", {"unique_id": ""}),
        ("unique_id", {"unique_id": "a b"}),
        ("unique_id", {"unique_id": "a/b"}),
        ("unique_id", {"unique_id": "é"}),
        ("unique_id", {"unique_id": "x" * 129}),
        ("message_for_user", {"message": ""}),
        ("message_for_user", {"message": " \n"}),
        ("message_for_user", {"message": "x" * 4001}),
        ("options", {"choices": Choices(kind=Kind.TEXT, options=("a",))}),
        ("options", {"choices": Choices(kind=Kind.MULTIPLE_CHOICE)}),
        ("options", {"choices": Choices(kind=Kind.MULTIPLE_CHOICE, options=())}),
        ("options", {"choices": Choices(kind=Kind.MULTIPLE_CHOICE, options=("a", "a"))}),
        ("options", {"choices": Choices(kind=Kind.MULTIPLE_CHOICE, options=("x" * 201,))}),
        ("options", {"choices": Choices(kind=Kind.MULTIPLE_CHOICE, options=tuple(map(str, range(21))))}),
        ("yes_label", {"choices": Choices(kind=Kind.SECRET, yes_label="Do it")}),
        ("public_key", {"public_key": b"short"}),
    ],
)
def test_what_breaks_a_rule_is_refused_by_its_field(field: str, wrong: dict[str, Any]):
    with pytest.raises(FieldFault) as refused:
        feedback.check(asking(**wrong))
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("expires", "waiter", "how"),
    [
        (1, 1, None),
        (300, 15, None),
        (0, 15, FeedbackStatus.EXPIRED),
        (-1, 15, FeedbackStatus.EXPIRED),
        (300, 0, FeedbackStatus.CANCELLED),
        (-1, -2, FeedbackStatus.CANCELLED),
        (-2, -1, FeedbackStatus.EXPIRED),
        (-1, -1, FeedbackStatus.EXPIRED),
    ],
)
def test_the_earlier_of_deadline_and_waiter_ends_it(expires: float, waiter: float, how: FeedbackStatus | None):
    assert feedback.due(kept(expires, waiter)) is how
    for status in set(FeedbackStatus) - {FeedbackStatus.PENDING}:
        assert feedback.due(kept(expires, waiter, status=status)) is None


def test_only_the_very_same_joins():
    assert feedback.joins(kept(), asking(), "k")
    for other in (
        asking(message="Another?"),
        asking(public_key=Opener(b"o" * 32).public_key),
        asking(timeout_seconds=301),
        asking(session_id="s"),
        asking(execution_id="e"),
        asking(choices=Choices(kind=Kind.SECRET)),
    ):
        assert not feedback.joins(kept(), other, "k")
    assert not feedback.joins(kept(), asking(), "other")
    assert not feedback.joins(kept(), asking(), None)
    assert not feedback.joins(kept(question=None, public_key=None), asking(), "k")


def test_each_end_is_told_as_what_it_is():
    feedback.check_open(FeedbackStatus.PENDING)
    feedback.check_alive(FeedbackStatus.ANSWERED)
    for status, refusal in (
        (FeedbackStatus.ANSWERED, AlreadyAnswered),
        (FeedbackStatus.EXPIRED, RequestExpired),
        (FeedbackStatus.CANCELLED, RequestCancelled),
    ):
        with pytest.raises(refusal):
            feedback.check_open(status)


def test_nothing_shows_its_words():
    for each in (asking(), question(), kept()):
        assert "482913" not in repr(each)
    assert question().context == "This request expires in 300 seconds."
    assert question().allow_feedback
    assert not question(choices=Choices(kind=Kind.YES_NO)).allow_feedback
