"""No bytes make a reader raise what it does not declare, or accept what a second reading of the rule refuses."""

import pytest

from tests.fuzz.draw import made
from tests.fuzz.outcomes import Tally
from tests.fuzz.structured import PROPERTIES, holds
from tests.fuzz.targets import BY_NAME

SEED = 20_261_001
QUICK = 2500
EXAMPLES = 100


@pytest.mark.parametrize("name", BY_NAME)
def test_bytes_from_a_seed(name: str) -> None:
    tally = Tally(BY_NAME[name]).run(made(SEED, QUICK))
    assert not tally.faults, tally.told()
    assert BY_NAME[name].meets <= set(tally.words), tally.words


@pytest.mark.parametrize("name", BY_NAME)
def test_no_bytes_at_all(name: str) -> None:
    tally = Tally(BY_NAME[name]).run([b"", b"\x00", b"\xff" * 300])
    assert not tally.faults, tally.told()


@pytest.mark.parametrize("name", PROPERTIES)
def test_inputs_that_are_put_together(name: str) -> None:
    holds(name, EXAMPLES)
