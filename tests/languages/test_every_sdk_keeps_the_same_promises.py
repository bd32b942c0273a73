"""Every scenario of sdk/conformance/scenarios.json on a live control plane, by the driver of each language."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.languages import agents, table
from tests.languages.planes import Plane
from tests.languages.playing import Play
from tests.languages.scenarios import MODES, Scenario, load
from tests.languages.sdks import SDKS, Sdk

SCENARIOS = load()
ASKS = {"run": "r", "script": [{"pause": {"approval_request_id": "$q"}}]}
ASKED = {"asked": "a", "of": "$r"}
APPROVED = {"decide": "$a", "decision": "approved"}
WAITS = {"start": "w", "op": "wait_for_approval", "args": {"execution_id": "$r"}}


@pytest.fixture(scope="module")
def pool(sdk: Sdk, plane: Plane, session: str) -> Iterator[agents.Pool]:
    made = agents.Pool(sdk, plane, session)
    yield made
    made.end()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[each.shown for each in SCENARIOS])
def test_it_is_kept(
    sdk: Sdk, pool: agents.Pool, plane: Plane, scenario: Scenario, request: pytest.FixtureRequest
) -> None:
    if sdk.name in scenario.skips:
        pytest.skip(scenario.skips[sdk.name])
    with agents.cast(pool, scenario) as cast:
        Play(plane, cast).steps(scenario.steps)
    table.said(request.node, table.SCENARIO, sdk.name)


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
def test_a_planted_fault_fails_the_scenario(planted: list[dict[str, Any]], plane: Plane, pool: agents.Pool) -> None:
    scenario = Scenario("planted", "pull", ("pull",), own=False, skips={}, steps=planted)
    with agents.cast(pool, scenario) as cast, pytest.raises(AssertionError, match=rf"^step {len(planted)} |^step 3 "):
        Play(plane, cast).steps(planted)


def test_no_two_scenarios_have_one_name() -> None:
    assert len({each.shown for each in SCENARIOS}) == len(SCENARIOS)


def test_every_mode_is_known_and_every_skip_has_a_language_and_a_reason() -> None:
    assert {mode for each in SCENARIOS for mode in each.modes} == set(MODES)
    for each in SCENARIOS:
        assert each.skips.keys() <= SDKS.keys()
        assert all(reason.strip() for reason in each.skips.values())
