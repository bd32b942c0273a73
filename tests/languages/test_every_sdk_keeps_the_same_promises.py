"""Every scenario of sdk/conformance/scenarios.json on a live control plane, by the driver of each language."""

from collections.abc import Iterator

import pytest

from tests.languages import agents, table
from tests.languages.planes import Plane
from tests.languages.playing import Play
from tests.languages.scenarios import MODES, Scenario, load
from tests.languages.sdks import SDKS, Sdk

SCENARIOS = load()


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


def test_no_two_scenarios_have_one_name() -> None:
    assert len({each.shown for each in SCENARIOS}) == len(SCENARIOS)


def test_every_mode_is_known_and_every_skip_has_a_language_and_a_reason() -> None:
    assert {mode for each in SCENARIOS for mode in each.modes} == set(MODES)
    for each in SCENARIOS:
        assert each.skips.keys() <= SDKS.keys()
        assert all(reason.strip() for reason in each.skips.values())
