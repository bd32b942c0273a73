"""Nothing that hypothesis remembers is left beside the sources."""

from hypothesis.configuration import set_hypothesis_home_dir

from tests.fuzz.outcomes import CACHE

set_hypothesis_home_dir(CACHE / "hypothesis")
