"""Hostile bytes against whatever reads what others send: targets, oracles of their own, and what drives them.

`python -m tests.fuzz` (`make fuzz`) runs all of it at length; the tests here run the same for a moment each.
"""
