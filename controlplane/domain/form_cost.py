"""What checking a value against a schema may cost at most, known before anything is checked.

A schema comes from outside and so does the value, and a check cannot be stopped. References without a cycle make
every schema a finite tree: what it asks of one value, times the values that are checked, bounds the work. Patterns
run in linear time: the size of their automata, times the bytes of the values, bounds theirs. The weights are as
measured; a unit is about 50 ns.
"""

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from typing import Any

from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError
from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain.errors import FieldFault

MAX_DEPTH = 32
MAX_PROPERTIES = 100
MAX_WEIGHT = 10_000
MAX_CHECKS = 2_000_000
MAX_PATTERNS = 100
MAX_PATTERN = 500
MAX_PATTERNS_SIZE = 1_000_000
MAX_PATTERN_STEPS = 300_000_000
DRAFT = "https://json-schema.org/draft/2020-12/schema"

_DIALECTS = frozenset({DRAFT, f"{DRAFT}#"})
# Numbers are compared exactly, through decimals unless both are small and whole; long ones each with each.
_NUMBER = 300
_PAIR = 600
_WORDS = {"uniqueItems": 500, "propertyNames": 30, "format": 20}
_FORMAT = 100
_WHOLE = 3
_DIGITS_A_UNIT = 30
_FINEST = 1e-9
_SMALL = 2**53
_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_ONE = ("additionalProperties", "items", "contains", "not", "if", "then", "else", "propertyNames")
_LISTS = ("allOf", "anyOf", "oneOf")
_MAPS = ("patternProperties", "dependentSchemas")
# Each of these parts is for another part of the value, so that the costliest of them bounds them all.
_SPLIT = ("properties", "prefixItems")
_DEFINITIONS = ("$defs", "definitions")
_COUNTED = ("required", "type", "dependentRequired", "properties")
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
_PATTERN_SIZES = tuple(1 << step for step in range(10, 19))


def fault_of(rule: str) -> FieldFault:
    """The refusal of a schema, with the rule that it breaks."""
    return FieldFault("form", f"its schema {rule}")


class Cost(Struct, frozen=True):
    """A bound: how many checks one value may need, the size of the patterns among them, and how deep they go."""

    weight: int = 1
    patterns: int = 0
    unique: int = 0
    height: int = 1

    def beside(self, other: "Cost") -> "Cost":
        """The cost of both for the same value."""
        height = max(self.height, other.height)
        weight, patterns = self.weight + other.weight, self.patterns + other.patterns
        return Cost(weight, patterns, self.unique + other.unique, height)

    def instead(self, other: "Cost") -> "Cost":
        """The cost of one of them, whichever is more."""
        height = max(self.height, other.height)
        weight, patterns = max(self.weight, other.weight), max(self.patterns, other.patterns)
        return Cost(weight, patterns, max(self.unique, other.unique), height)

    def allows(self, values: object, size: int) -> bool:
        """Whether a value of so many bytes may be checked."""
        count, long = _count(values)
        checks = self.weight * count + self.unique * _PAIR * long * long
        return checks <= MAX_CHECKS and self.patterns * size <= MAX_PATTERN_STEPS


_NOTHING = Cost(0, 0, 0, 0)


def cost_of(schema: dict[str, Any]) -> Cost:
    """What checking one value costs at most.

    Raises:
        FieldFault: the schema uses what has no bound, or is too large.
    """
    walk = _Walk(schema)
    cost = walk.of(schema, depth=1)
    if cost.weight > MAX_WEIGHT:
        raise fault_of(f"must have at most {MAX_WEIGHT} parts, each counted where it is referred to")
    if cost.patterns > MAX_PATTERNS_SIZE:
        raise fault_of("must have simpler patterns; say lengths with maxLength")
    return cost


class _Walk:
    """One pass over a schema; what stands under $defs is measured once and counted wherever it is referred to."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[str, Cost] = {}
        self._open: set[str] = set()
        self._patterns = 0
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
        cost = reduce(Cost.beside, (self.of(part, depth=depth + 1) for part in _beside(schema)), self._own(schema))
        for word in _SPLIT:
            split = (self.of(part, depth=depth + 1) for part in _inside(schema.get(word)))
            cost = cost.beside(reduce(Cost.instead, split, _NOTHING))
        if "$ref" in schema:
            cost = cost.beside(self._referred(schema["$ref"], depth=depth + 1))
        return replace(cost, height=1 + cost.height)

    def _own(self, schema: dict[str, Any]) -> Cost:
        """What a schema costs without its parts; a format is read as a small pattern is."""
        patterns = _patterns(schema)
        self._patterns += len(patterns)
        if self._patterns > MAX_PATTERNS:
            raise fault_of(f"must have at most {MAX_PATTERNS} patterns")
        weight = 1 + sum(_members(schema.get(word)) for word in _COUNTED)
        weight += sum(_NUMBER for word in _NUMERIC if word in schema)
        weight += _comparing(_listed(schema.get("enum"))) + _comparing([schema["const"]] if "const" in schema else [])
        unique = int(schema.get("uniqueItems") is True)
        weight += sum(each for word, each in _WORDS.items() if word in schema)
        weight += _WHOLE * ("integer" in str(schema.get("type")))
        return Cost(weight, sum(map(_size, patterns)) + _FORMAT * ("format" in schema), unique, 0)

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


def _beside(schema: dict[str, Any]) -> Iterator[object]:
    yield from (schema[word] for word in _ONE if word in schema)
    for word in (*_LISTS, *_MAPS):
        yield from _inside(schema.get(word))


def _check_words(schema: dict[str, Any], *, top: bool) -> None:
    for word in (*_REFUSED, *(() if top else (*_DEFINITIONS, "$schema"))):
        if word in schema:
            raise fault_of(f"must not use {word}" if word in _REFUSED else f"must have {word} at its top only")
    if schema.get("$schema", DRAFT) not in _DIALECTS:
        raise fault_of(f"must be of the draft 2020-12 ({DRAFT})")
    if _members(schema.get("properties")) > MAX_PROPERTIES:
        raise fault_of(f"must have at most {MAX_PROPERTIES} properties in an object")
    multiple = schema.get("multipleOf")
    if isinstance(multiple, int | float) and not _FINEST <= multiple <= _SMALL:
        raise fault_of(f"must have a multipleOf from {_FINEST} to {_SMALL}")
    # Comparing with lists and objects costs as much as they are large, for every value anew.
    fixed = [*_listed(schema.get("enum")), schema.get("const")]
    if any(isinstance(each, list | dict) for each in fixed):
        raise fault_of("must have texts, numbers, true, false or null in enum and const")


def _patterns(schema: dict[str, Any]) -> list[str]:
    named = schema.get("patternProperties")
    found = [*(named if isinstance(named, dict) else ())]
    return [*found, schema["pattern"]] if isinstance(schema.get("pattern"), str) else found


def _comparing(options: list[Any]) -> int:
    """What it costs to find a value among options: they are looked up where none is a number."""
    if all(isinstance(each, str | bool | None) for each in options):
        return len(options)
    return _NUMBER * len(options)


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


def _count(value: object) -> tuple[int, int]:
    """How many values stand in one, itself and the names of members among them, and how many long numbers."""
    level, count, long = [value], 0, 0
    while level:
        count += len(level) + sum(len(each) for each in level if isinstance(each, dict))
        digits = [_digits(each) for each in level if isinstance(each, int | float)]
        count += sum(each // _DIGITS_A_UNIT for each in digits)
        long += sum(each > 0 for each in digits)
        level = [inner for each in level for inner in _inside(each)]
    return count, long


def _digits(number: float) -> int:
    return 0 if abs(number) < _SMALL else math.floor(math.log10(abs(number)))


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
