"""What a seal digests is fixed: a copy taken today is verified by every later version, and by anybody's own program."""

import hashlib
from datetime import UTC, datetime, timedelta, timezone

import pytest

from controlplane.domain.seals import COLUMNS, NOTHING, Digest, Place, encoded, moment, seal

FIRST = (
    "7",
    "755",
    "2026-01-31T23:59:59.000001Z",
    "approval.approved",
    "exec_1",
    "apr_1",
    "review_v1",
    "agent",
    "sender",
    "L\u00e9gal, 1:2-\n",
    "webhook",
    None,
    "true",
    '{"to": "approved", "from": "pending"}',
    "",
)
SECOND = ("5", "756", "2026-02-01T00:00:00.000000Z", *FIRST[3:12], "false", "{}", "key1")
AT = "2026-02-01T00:00:01.500000Z"
LINE = (
    b"1:7,3:755,27:2026-01-31T23:59:59.000001Z,17:approval.approved,6:exec_1,5:apr_1,9:review_v1,5:agent,6:sender,"
    b"13:L\xc3\xa9gal, 1:2-\n,7:webhook,-,4:true,37:" + b'{"to": "approved", "from": "pending"}' + b",0:\n"
)


def test_a_row_is_one_line_in_which_nothing_means_two_things():
    assert encoded(FIRST) == LINE
    assert len(FIRST) == len(COLUMNS)
    assert len({encoded(("a", None)), encoded(("a", "")), encoded(("a", "-")), encoded(("a,-",)), encoded(("a",))}) == 5


def test_the_digest_is_that_of_the_written_form():
    made = seal(None, [FIRST, SECOND], AT)
    form = b"holdshort seal 1\n" + b"0" * 64 + b"\n" + LINE + encoded(SECOND) + b"1:1,27:" + AT.encode() + b",1:2\n"
    assert made.sha256 == hashlib.sha256(form).digest()
    assert made.sha256.hex() == "ce5166ee9dadabdf81ad0d4e801a7a1191ccef02129327ee65cf75dd511bb6de"
    assert (made.number, made.first, made.last, made.rows, made.at) == (1, Place(755, 7), Place(756, 5), 2, AT)


def test_a_seal_digests_the_one_before_it():
    first = seal(None, [FIRST], AT)
    second = seal(first, [SECOND], AT)
    assert second.sha256.hex() == "658d74b3a6e0f389cd98c259da554a47f882c3782c9a222bcc1b45ae4570d9be"
    assert second.number == 2
    assert seal(None, [SECOND], AT).sha256 != second.sha256


@pytest.mark.parametrize("column", COLUMNS)
def test_a_digest_depends_on_every_column(column: str):
    at = COLUMNS.index(column)
    made = {seal(None, [(*FIRST[:at], text, *FIRST[at + 1 :])], AT).sha256 for text in ("8", "9", None)}
    assert len(made) == 3


def test_a_digest_depends_on_order_number_moment_and_count():
    def closed(*rows: tuple[str | None, ...], number: int = 1, at: str = AT, count: int = 2) -> bytes:
        digest = Digest(NOTHING)
        for row in rows:
            digest.add(row)
        return digest.close(number, at, count)

    made = {
        closed(FIRST, SECOND),
        closed(SECOND, FIRST),
        closed(FIRST, SECOND, number=2),
        closed(FIRST, SECOND, at=AT.replace("01.5", "02.5")),
        closed(FIRST, SECOND, count=3),
    }
    assert len(made) == 5


def test_a_moment_is_written_in_utc_to_the_microsecond():
    at = datetime(2026, 2, 1, 1, 30, 0, 5, timezone(timedelta(hours=1, minutes=30)))
    assert moment(at) == "2026-02-01T00:00:00.000005Z"
    assert moment(datetime(2026, 2, 1, tzinfo=UTC)) == "2026-02-01T00:00:00.000000Z"
