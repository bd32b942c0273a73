"""What is sealed opens with the keys and the id that it was sealed for, says nothing of its length, and else fails."""

import base64
from typing import Any

import pytest

from controlplane.domain.errors import FieldFault
from controlplane.domain.sealing import BLOCK_BYTES, Opener, SealBroken, Sealed, check_public_key, seal
from tests.contract.vectors import load

VECTORS = load("feedback_sealing")
# Points of small order: what is sealed to them opens for everybody.
SMALL = ["00" * 32, "01" + "00" * 31, "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"]


def raw(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def opener() -> Opener:
    return Opener(raw(VECTORS["private_key"]))


def sealed(case: dict[str, Any]) -> Sealed:
    return Sealed(raw(case["enc"]), raw(case["ct"]))


def test_the_vectors_are_there():
    assert len(VECTORS["opens"]) == 5
    assert len(VECTORS["refused"]) == 3
    assert opener().public_key == raw(VECTORS["public_key"])


@pytest.mark.parametrize("case", VECTORS["opens"], ids=lambda case: case["unique_id"])
def test_every_vector_opens(case: dict[str, Any]):
    assert opener().open(sealed(case), case["unique_id"]) == case["answer"]


@pytest.mark.parametrize("case", VECTORS["refused"], ids=lambda case: case["name"])
def test_every_vector_that_was_tampered_with_is_refused(case: dict[str, Any]):
    with pytest.raises(SealBroken):
        opener().open(sealed(case), case["unique_id"])


def test_whatever_is_sealed_opens_as_it_was():
    for length in range(1, 3 * BLOCK_BYTES):
        for letter in ("x", "é", "\U0001f44d"):
            answer = letter * length
            assert opener().open(seal(answer, opener().public_key, "q"), "q") == answer


def test_the_length_of_an_answer_does_not_show():
    lengths = {len(seal("x" * length, opener().public_key, "q").ct) for length in range(BLOCK_BYTES)}
    assert len(lengths) == 1
    assert len(seal("x" * BLOCK_BYTES, opener().public_key, "q").ct) == lengths.pop() + BLOCK_BYTES


def test_the_same_answer_is_never_sealed_alike():
    first, second = (seal("482913", opener().public_key, "q") for _ in range(2))
    assert (first.enc, first.ct) != (second.enc, second.ct)
    assert first.enc != second.enc


def test_no_other_keys_and_no_other_question_open_it():
    made = seal("482913", opener().public_key, "q")
    for other, unique_id in ((Opener(b"x" * 32), "q"), (opener(), "Q"), (opener(), "q\0")):
        with pytest.raises(SealBroken):
            other.open(made, unique_id)


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33, *map(bytes.fromhex, SMALL)])
def test_a_key_that_hides_nothing_is_refused(key: bytes):
    with pytest.raises(FieldFault) as refused:
        check_public_key(key)
    assert refused.value.field == "public_key"


def test_nothing_shows_what_is_in_it():
    made = seal("482913", opener().public_key, "q")
    assert repr(made) == "Sealed()"
    assert "482913" not in repr(opener())
