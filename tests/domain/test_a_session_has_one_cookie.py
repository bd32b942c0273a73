import base64
from datetime import UTC, datetime, timedelta

import pytest

from controlplane.domain import sessions
from controlplane.domain.sessions import Session

SECRET = bytes(range(32))
NOW = datetime(2026, 1, 8, tzinfo=UTC)


def opened(*, used: timedelta, old: timedelta, ended: bool = False) -> Session:
    return Session(
        digest=sessions.digest_of(SECRET),
        session_id="ses_1",
        key_id="k",
        key_digest=bytes(32),
        created_at=NOW - old,
        seen_at=NOW - used,
        ended_at=NOW if ended else None,
    )


def test_a_cookie_is_read_as_it_was_made():
    assert sessions.read(sessions.cookie_of(SECRET)) == SECRET


@pytest.mark.parametrize("first", range(64))
def test_no_other_spelling_of_a_cookie_is_taken(first: int):
    """The last of its 43 characters has two bits that mean nothing."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = sessions.cookie_of(SECRET)[:-1] + letters[first]
    read = sessions.read(other)
    assert read is None or sessions.cookie_of(read) == other


@pytest.mark.parametrize("cookie", ["", "A" * 42, "A" * 44, "A" * 42 + "=", "A" * 42 + "+", "é" * 43, "A" * 42 + "\n"])
def test_what_cannot_be_a_cookie_is_none(cookie: str):
    assert sessions.read(cookie) is None


def test_a_forms_token_is_of_one_session_and_tells_nothing_of_its_cookie():
    token = sessions.token_of(SECRET)
    assert sessions.is_token_of(token, SECRET)
    assert not sessions.is_token_of(token, bytes(32))
    assert not sessions.is_token_of("", SECRET)
    assert not sessions.is_token_of(f"{token}A", SECRET)
    assert not sessions.is_token_of("é", SECRET)
    assert len({token, sessions.cookie_of(SECRET), base64.b64encode(sessions.digest_of(SECRET)).decode()}) == 3


@pytest.mark.parametrize(
    ("session", "holds"),
    [
        (opened(used=timedelta(0), old=timedelta(0)), True),
        (opened(used=timedelta(hours=11, minutes=59, seconds=59), old=timedelta(days=1)), True),
        (opened(used=timedelta(hours=12), old=timedelta(days=1)), False),
        (opened(used=timedelta(0), old=timedelta(days=6, hours=23, minutes=59, seconds=59)), True),
        (opened(used=timedelta(0), old=timedelta(days=7)), False),
        (opened(used=timedelta(0), old=timedelta(0), ended=True), False),
    ],
)
def test_a_session_holds_twelve_hours_unused_and_seven_days_at_most(session: Session, holds: bool):
    assert sessions.holds(session, NOW) is holds


def test_its_use_is_noted_once_a_minute():
    assert not sessions.is_worth_noting(opened(used=timedelta(seconds=59), old=timedelta(1)), NOW)
    assert sessions.is_worth_noting(opened(used=timedelta(seconds=60), old=timedelta(1)), NOW)
