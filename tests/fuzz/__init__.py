"""Hostile bytes against whatever reads what others send: targets, oracles of their own, and what drives them.

`python -m tests.fuzz` (`make fuzz`) runs all of it at length; the tests here run the same for a moment each.
"""

from pathlib import Path

from hypothesis.configuration import set_hypothesis_home_dir

# What hypothesis remembers of our sources is not left beside them.
set_hypothesis_home_dir(Path(__file__).parents[2] / ".cache" / "fuzz" / "hypothesis")
