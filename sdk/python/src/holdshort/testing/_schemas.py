"""Which schemas a form may have: what the control plane refuses although it is JSON Schema, but for its cost."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from holdshort.testing._book import Refusal
from holdshort.testing._visits import invalid

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_MOST_PROPERTIES = 100
_LONGEST_PATTERN = 500
_DEFINITIONS = ("$defs", "definitions")
_REFUSED = frozenset(
    {
        "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary",
        "unevaluatedProperties", "unevaluatedItems", "dependencies", "additionalItems",
    }
)  # fmt: skip
_DATA = frozenset({"enum", "const", "default", "examples", "required"})
_UNBOUNDED = re.compile(r"\(\?<?[=!]|\\[1-9]")


def check(schema: Mapping[str, Any]) -> None:
    """Refuse what could refer to elsewhere or to itself, or take for ever; the schema is one already."""
    if schema.get("$schema", _DRAFT).rstrip("#") != _DRAFT:
        raise _refusal(f"must be of the draft 2020-12 ({_DRAFT})")
    _check_part(schema, schema, ())


def _check_part(root: Mapping[str, Any], part: Any, inside: tuple[str, ...]) -> None:
    for each in _parts(part):
        if found := _REFUSED & each.keys():
            raise _refusal(f"must not use {min(found)}")
        if len(each.get("properties", ())) > _MOST_PROPERTIES:
            raise _refusal(f"must have at most {_MOST_PROPERTIES} properties in an object")
        pattern = each.get("pattern", "")
        if len(pattern) > _LONGEST_PATTERN or _UNBOUNDED.search(pattern):
            raise _refusal("must have patterns that need no look-around or back reference")
        if "$ref" in each:
            _follow(root, each["$ref"], inside)


def _follow(root: Mapping[str, Any], reference: str, inside: tuple[str, ...]) -> None:
    hash_, _, rest = reference.partition("/")
    place, _, name = rest.partition("/")
    if hash_ != "#" or place not in _DEFINITIONS or name not in root.get(place, {}):
        raise _refusal("must refer to its own parts only, as #/$defs/NAME; nothing is fetched")
    if reference in inside:
        raise _refusal("must not refer to itself, not even in a circle")
    _check_part(root, root[place][name], (*inside, reference))


def _parts(part: Any) -> Iterator[Mapping[str, Any]]:
    """A part and all that stands in it; definitions are looked at where they are referred to."""
    if isinstance(part, list):
        for each in part:
            yield from _parts(each)
    if isinstance(part, Mapping):
        yield part
        for word, value in part.items():
            if word in {"properties", "patternProperties", "dependentSchemas"}:
                yield from _parts([*value.values()])
            elif word not in _DATA and word not in _DEFINITIONS:
                yield from _parts(value)


def _refusal(rule: str) -> Refusal:
    return invalid("form.schema", rule)
