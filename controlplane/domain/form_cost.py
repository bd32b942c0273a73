"""What checking a value against a schema may cost at most, known before anything is checked.

A schema comes from outside and so does the value, and a check cannot be stopped. References without a cycle make
every schema a finite tree; its size, times the values that are checked, bounds the work. Patterns run in linear
time: the size of their automata, times the bytes of the values, bounds theirs.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError
from msgspec import Struct

from controlplane.domain.errors import FieldFault

MAX_DEPTH = 32
MAX_PROPERTIES = 100
MAX_WEIGHT = 5_000
MAX_CHECKS = 5_000_000
MAX_PATTERN = 500
MAX_PATTERNS_SIZE = 1_000_000
MAX_PATTERN_STEPS = 1_000_000_000
DRAFT = "https://json-schema.org/draft/2020-12/schema"

_DIALECTS = frozenset({DRAFT, f"{DRAFT}#"})
_ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "dependentSchemas")
_DEFINITIONS = ("$defs", "definitions")
_COUNTED = ("enum", "required", "type", "dependentRequired")
# Each of them makes where a reference leads, or how often a part is checked, depend on more than the schema's text.
_REFUSED = (
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
    "unevaluatedProperties",
    "unevaluatedItems",
    "dependencies",
    "additionalItems",
)
_PATTERN_SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)


def fault_of(rule: str) -> FieldFault:
    """The refusal of a schema, with the rule that it breaks."""
    return FieldFault("form", f"its schema {rule}")


class Cost(Struct, frozen=True):
    """A bound: how many checks one value may need, the size of the patterns among them, and how deep they go."""

    weight: int = 1
    patterns: int = 0
    height: int = 1

    def with_parts(self, parts: "list[Cost]") -> "Cost":
        """The cost of a schema with those of its parts."""
        return Cost(
            self.weight + sum(part.weight for part in parts),
            self.patterns + sum(part.patterns for part in parts),
            1 + max((part.height for part in parts), default=0),
        )

    def allows(self, values: object, size: int) -> bool:
        """Whether a value of so many bytes may be checked."""
        return self.weight * _count(values) <= MAX_CHECKS and self.patterns * size <= MAX_PATTERN_STEPS


def cost_of(schema: dict[str, Any]) -> Cost:
    """What checking one value costs at most.

    Raises:
        FieldFault: the schema uses what has no bound, or is too large.
    """
    cost = _Walk(schema).of(schema, depth=1)
    if cost.weight > MAX_WEIGHT:
        raise fault_of(f"must have at most {MAX_WEIGHT} parts, each counted where it is referred to")
    if cost.patterns > MAX_PATTERNS_SIZE:
        raise fault_of("must have fewer or simpler patterns; say lengths with maxLength")
    return cost


class _Walk:
    """One pass over a schema; what stands under $defs is measured once and counted wherever it is referred to."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[str, Cost] = {}
        self._open: set[str] = set()
        for name in _DEFINITIONS:
            if not isinstance(root.get(name, {}), dict):
                raise fault_of(f"must have an object as {name}")

    def of(self, schema: object, *, depth: int) -> Cost:
        """The cost of a part that stands `depth` deep, references followed."""
        if depth > MAX_DEPTH:
            raise fault_of(f"must not nest more than {MAX_DEPTH} deep, references followed")
        if not isinstance(schema, dict):
            return Cost()
        _check_words(schema, top=schema is self._root)
        own = Cost(1 + sum(_members(schema.get(word)) for word in _COUNTED), _patterns(schema))
        parts = [self.of(part, depth=depth + 1) for part in _parts(schema)]
        if "$ref" in schema:
            parts.append(self._referred(schema["$ref"], depth=depth + 1))
        return own.with_parts(parts)

    def _referred(self, reference: object, *, depth: int) -> Cost:
        target = self._target(reference)
        if reference in self._open:
            raise fault_of("must not refer to itself, not even in a circle")
        known = self._known.get(str(reference))
        if known is None:
            self._open.add(str(reference))
            known = self._known[str(reference)] = self.of(target, depth=depth)
            self._open.discard(str(reference))
        if depth + known.height - 1 > MAX_DEPTH:
            raise fault_of(f"must not nest more than {MAX_DEPTH} deep, references followed")
        return known

    def _target(self, reference: object) -> object:
        place = str(reference).split("/")
        if isinstance(reference, str) and len(place) == 3 and place[0] == "#" and place[1] in _DEFINITIONS:
            found = self._root.get(place[1], {}).get(place[2])
            if found is not None and not set(place[2]) & set("~%"):
                return found
        raise fault_of("must refer to its own parts only, as #/$defs/NAME; nothing is fetched")


def _parts(schema: dict[str, Any]) -> Iterator[object]:
    yield from (schema[word] for word in _ONE if word in schema)
    for word in _LISTS:
        parts = schema.get(word, [])
        yield from parts if isinstance(parts, list) else [parts]
    for word in _MAPS:
        parts = schema.get(word, {})
        yield from parts.values() if isinstance(parts, dict) else [parts]


def _check_words(schema: dict[str, Any], *, top: bool) -> None:
    for word in (*_REFUSED, *(() if top else (*_DEFINITIONS, "$schema"))):
        if word in schema:
            raise fault_of(f"must not use {word}" if word in _REFUSED else f"must have {word} at its top only")
    if schema.get("$schema", DRAFT) not in _DIALECTS:
        raise fault_of(f"must be of the draft 2020-12 ({DRAFT})")
    if _members(schema.get("properties")) > MAX_PROPERTIES:
        raise fault_of(f"must have at most {MAX_PROPERTIES} properties in an object")
    # Comparing with lists and objects costs as much as they are large, for every value anew.
    fixed = [*_listed(schema.get("enum")), schema.get("const")]
    if any(isinstance(each, list | dict) for each in fixed):
        raise fault_of("must have texts, numbers, true, false or null in enum and const")


def _patterns(schema: dict[str, Any]) -> int:
    named = schema.get("patternProperties")
    found = [*(named if isinstance(named, dict) else ())]
    if isinstance(schema.get("pattern"), str):
        found.append(schema["pattern"])
    return sum(map(_size, found))


@lru_cache(maxsize=1024)
def _size(pattern: str) -> int:
    """The size of a pattern's automaton in bytes: the first limit under which it compiles."""
    if len(pattern) <= MAX_PATTERN:
        for size in _PATTERN_SIZES:
            try:
                Draft202012Validator({"pattern": pattern}, pattern_options=RegexOptions(size_limit=size), offline=True)
            except (ValidationError, ValueError):
                continue
            return size
    raise fault_of(f"must have patterns of at most {MAX_PATTERN} characters that need no look-around or back reference")


def _members(value: object) -> int:
    return len(value) if isinstance(value, list | dict) else 0


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _count(value: object) -> int:
    """How many values stand in one, itself and the names of members among them."""
    level, count = [value], 0
    while level:
        count += len(level)
        count += sum(len(each) for each in level if isinstance(each, dict))
        level = [inner for each in level for inner in _inside(each)]
    return count


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
