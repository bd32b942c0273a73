"""Whatever the order in which tasks get along, a restarted run's calls each find their own stored result."""

from collections import Counter
from random import Random

import pytest
from holdshort.testing import ControlPlane

from sdk.python.tests.programs import RUN, Attempt, Killed, calls, program


def lived_through(seed: int) -> int:
    """Run a random program, killing it at random steps until it ends; returns how many steps it stored."""
    rng = Random(seed)
    plane, ops = ControlPlane(), program(rng)
    wanted = calls(ops)
    stored: Counter[str] = Counter()
    for _ in range(12):
        at = rng.choice((None, *range(1, 12)))
        attempt = Attempt(plane, rng, Killed(plane, at, stored=rng.random() < 0.5))
        ended = attempt.run(ops)
        assert attempt.wrong == []
        assert attempt.done <= wanted - stored
        stored = Counter(step.result["site"] for step in plane.steps(RUN))
        if ended:
            return len(plane.steps(RUN))
    return len(plane.steps(RUN))


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_programs(first: int) -> None:
    assert sum(lived_through(seed) for seed in range(first, first + 50)) > 500
