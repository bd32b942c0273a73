"""Names of a scenario in its values, and whether what was found is what it expects."""

import re
import secrets
from typing import Any

_NAME = re.compile(r"\$([a-z][a-z_0-9]*)")


class Names:
    """The names of one play of a scenario: bound by its steps, or made when they are first used.

    Args:
        known: those that are bound from the start.
    """

    def __init__(self, known: dict[str, str]) -> None:
        self._suffix = secrets.token_hex(4)
        self._bound = dict(known)
        self.made: set[str] = set()

    def bind(self, name: str, value: str) -> None:
        """Let a name mean this."""
        self._bound[name] = value

    def resolved(self, value: Any) -> Any:
        """The same with what its names mean."""
        if isinstance(value, dict):
            return {name: self.resolved(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.resolved(each) for each in value]
        named = _NAME.fullmatch(value) if isinstance(value, str) else None
        return value if named is None else self._meant(named[1])

    def _meant(self, name: str) -> str:
        if name not in self._bound:
            self._bound[name] = f"{name}-{self._suffix}"
            self.made.add(self._bound[name])
        return self._bound[name]


def differs(found: Any, expected: Any, place: str = "") -> str | None:
    """Where what was found is not what was expected, and how; None where it is.

    An object is expected as a part of the found one, a list member by member, `{"has": text}` as a part of a text.
    """
    if isinstance(expected, dict) and expected.keys() == {"has"} and isinstance(found, str):
        return None if expected["has"] in found else f"{place}: {expected['has']!r} is not in {found!r}"
    if isinstance(expected, dict) and isinstance(found, dict):
        absent = expected.keys() - found.keys()
        if absent:
            return f"{place}: no {sorted(absent)} in {found!r}"
        return _first(differs(found[name], each, f"{place}.{name}") for name, each in expected.items())
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return _first(differs(one, other, f"{place}[{at}]") for at, (one, other) in pairs)
    same = found == expected and type(found) is type(expected)
    return None if same else f"{place}: {found!r} instead of {expected!r}"


def _first(differences: Any) -> str | None:
    return next((each for each in differences if each is not None), None)
