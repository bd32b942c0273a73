"""What the scenarios' player compares and what the table sums up is tried on what is wrong."""

from typing import Any

import pytest

from tests.languages import covered, vectors
from tests.languages.matching import Names, differs


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (1, 2),
        (1, True),
        (0, False),
        (None, False),
        ("ab", {"has": "c"}),
        ({"a": 1}, {"b": 1}),
        ({"a": {"b": 1}}, {"a": {"b": 2}}),
        ([1], [1, 1]),
        ([1, 2], [2, 1]),
        ([], {}),
        ({}, []),
        ([{"a": None}], [{"a": ""}]),
    ],
)
def test_what_differs_is_found(found: Any, expected: Any) -> None:
    assert differs(found, expected) is not None


@pytest.mark.parametrize(
    ("found", "expected"),
    [(1, 1), ("abc", {"has": "b"}), ({"a": 1, "b": [2]}, {"b": [2]}), ([{"a": 1}], [{}]), (None, None)],
)
def test_what_is_as_expected_is_no_difference(found: Any, expected: Any) -> None:
    assert differs(found, expected) is None


def test_a_name_means_one_thing_in_a_play_and_another_in_the_next() -> None:
    names = Names({"known": "k"})
    q = names.resolved("$q")
    assert names.made == {q}
    assert names.resolved(["$known", "a $q", {"x": "$q"}]) == ["k", "a $q", {"x": q}]
    assert Names({}).resolved("$q") != q


def test_a_line_of_go_is_run_when_any_block_on_it_was() -> None:
    profile = ["mode: set", "m/a.go:1.2,2.3 1 0", "m/a.go:2.5,3.3 1 1", "m/conformance/driver/main.go:1.1,9.1 1 1"]
    assert covered.merged(profile) == {("m/a.go", 1): False, ("m/a.go", 2): True, ("m/a.go", 3): True}


def test_vectors_are_counted_as_they_are_said() -> None:
    said = 'x holdshort-vectors: {"language":"go","family":"errors","ran":2}\nholdshort-vectors: nothing\n' * 2
    assert vectors.ran(said) == {"go": {"errors": 4}}


def test_typescript_and_go_are_not_asked_for_schemas() -> None:
    assert vectors.expected("go") == vectors.expected("typescript")
    assert vectors.expected("go")["forms"] < vectors.expected("python")["forms"]
    assert all(vectors.expected("go").values())
