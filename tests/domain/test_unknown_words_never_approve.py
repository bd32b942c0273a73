"""Only the words of the table decide."""

import itertools
import sys

import pytest

from controlplane.domain.decisions import Decision, canonical, known
from controlplane.domain.errors import InvalidDecision


@pytest.mark.parametrize(
    "word",
    ["", "approved,", "ap proved", "approved approved", "approved\x00", "\u00a0approved", "approved\u2003", "accept"],
)
def test_near_misses_are_refused(word: str) -> None:
    with pytest.raises(InvalidDecision):
        canonical(word)


@pytest.mark.parametrize("word", [None, True, 1, 1.0, [], {}, b"approved", ["approved"]])
def test_what_is_no_text_is_refused(word: object) -> None:
    assert known(word) is None
    with pytest.raises(InvalidDecision):
        canonical(word)


def test_no_letter_of_another_script_passes_for_an_ascii_one() -> None:
    folded = (chr(code) for code in range(128, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    lookalikes = [each for each in folded if each.lower().isascii() or each.casefold().isascii()]
    assert "\u212a" in lookalikes
    for each, word in itertools.product(lookalikes, ("{}approved", "approved{}", "a{}prove")):
        assert known(word.format(each)) is None


def test_ascii_space_and_case_do_not_matter() -> None:
    assert canonical("\t\r\n\v\f Request_CHANGES \n") is Decision.REQUEST_CHANGES
