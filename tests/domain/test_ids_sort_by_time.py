"""Our ids sort by when they were made; callers' ids keep to their alphabet."""

from datetime import timedelta

import pytest

from controlplane.domain.errors import FieldFault
from controlplane.domain.ids import check_name, check_request_id, names_approval, time_ordered
from tests.factories import NOW

LOW, HIGH = bytes(10), b"\xff" * 10
CROCKFORD = set("0123456789abcdefghjkmnpqrstvwxyz")


def test_a_later_id_sorts_after_an_earlier_one():
    made = [time_ordered("apr_", NOW + timedelta(milliseconds=ms), HIGH if ms % 2 else LOW) for ms in range(200)]
    assert made == sorted(made)
    assert len(set(made)) == 200


def test_the_same_millisecond_differs_by_entropy():
    made = [time_ordered("apr_", NOW, entropy) for entropy in (LOW, LOW[:-1] + b"\x01", HIGH)]
    assert made == sorted(set(made))


@pytest.mark.parametrize("entropy", [LOW, HIGH])
@pytest.mark.parametrize("days", [-20_000, 0, 365_000])
def test_an_id_has_26_digits_of_one_alphabet(entropy: bytes, days: int):
    digits = time_ordered("apr_", NOW + timedelta(days=days), entropy).removeprefix("apr_")
    assert len(digits) == 26
    assert set(digits) <= CROCKFORD


@pytest.mark.parametrize("name", ["a", "A-z_0.9~:", "x" * 128, ".a"])
def test_a_name_keeps_to_its_alphabet(name: str):
    assert check_name("node_id", name) == name


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "a/b", "a\n", "\u00e9", "a%20", ".", "..", "..."])
def test_any_other_name_is_refused(name: str):
    with pytest.raises(FieldFault):
        check_name("node_id", name)


@pytest.mark.parametrize("value", ["a", " a", "deploy: 4/7 \u2014 prod?", "\U0001f680", "x" * 256, "APR_1"])
def test_a_request_id_may_be_almost_anything(value: str):
    assert check_request_id("approval_request_id", value) == value


@pytest.mark.parametrize("value", ["", " ", "x" * 257, "a\0", "a\nb", "\x7f", "\x85", "apr_", "apr_anything"])
def test_a_request_id_without_meaning_or_like_ours_is_refused(value: str):
    with pytest.raises(FieldFault) as refused:
        check_request_id("approval_request_id", value)
    assert refused.value.field == "approval_request_id"


def test_our_own_ids_are_known_by_their_prefix():
    assert names_approval("apr_1")
    assert not names_approval("my-apr_1")
