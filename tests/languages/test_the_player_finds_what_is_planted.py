"""A scenario that is not kept fails: what the player compares, waits for and sums up is tried on what is wrong."""

from typing import Any

import pytest

from tests.languages import agents, covered, vectors
from tests.languages.matching import Names, differs
from tests.languages.planes import Plane
from tests.languages.playing import Play
from tests.languages.scenarios import Scenario
from tests.languages.sdks import Usable

ASKS = {"run": "r", "script": [{"pause": {"approval_request_id": "$q"}}]}
ASKED = {"asked": "a", "of": "$r"}
APPROVED = {"decide": "$a", "decision": "approved"}
WAITS = {"start": "w", "op": "wait_for_approval", "args": {"execution_id": "$r"}}


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


@pytest.mark.parametrize(
    "planted",
    [
        [
            ASKS,
            ASKED,
            APPROVED,
            {"ended": "$r", "expect": {"status": "succeeded", "result": [{"decision": "rejected"}]}},
        ],
        [ASKS, ASKED, {**APPROVED, "replies": {"status": 409}}],
        [ASKS, ASKED, WAITS, APPROVED, {"ended": "$r"}, {"await": "w", "error": {"kind": "WaitTimeout"}}],
        [ASKS, ASKED, WAITS, APPROVED, {"ended": "$r"}, {"call": "journal", "args": {}}, {"still_waiting": "$r"}],
        [ASKS, ASKED, {"history": "$a", "expect": ["approval.requested", "approval.approved"]}, APPROVED],
        [ASKS, {"journal": ["$never"]}],
        [{"call": "get_approval_status", "args": {"execution_id": "$nobody"}, "error": {"kind": "Conflict"}}],
        [{"call": "no_such_op", "args": {}, "expect": None}],
    ],
)
def test_a_planted_fault_fails_the_scenario(
    planted: list[dict[str, Any]], usable: Usable, plane: Plane, pool: agents.Pool
) -> None:
    scenario = Scenario("planted", "pull", ("pull",), own=False, skips={}, steps=planted)
    with agents.cast(pool, scenario) as cast, pytest.raises(AssertionError, match=rf"^step {len(planted)} |^step 3 "):
        Play(plane, cast).steps(planted)


@pytest.fixture(scope="module")
def pool(usable: Usable, plane: Plane, session: str) -> Any:
    made = agents.Pool(usable("python"), plane, session)
    yield made
    made.end()


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
