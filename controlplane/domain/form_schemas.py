"""Schemas of forms: which are taken, whether values fit one, and what is wrong with those that do not.

JSON Schema of the draft 2020-12. No reference leaves the schema and nothing is ever fetched; patterns run in linear
time. The library's own errors are not asked for: gathering them takes time with the square of the value.
"""

from collections.abc import Iterator
from typing import Any

from jsonschema_rs import Draft202012Validator, ReferencingError, RegexOptions, ValidationError, ValidatorMap
from jsonschema_rs import validator_map_for as _map_for

from controlplane.domain.errors import InvalidAnswer
from controlplane.domain.form_cost import DRAFT, cost_of, fault_of
from controlplane.domain.form_words import rule_of

MAX_FAULTS = 20
MAX_LEVELS = 4
WHOLE = "values"

_UNFIT = "must fit the form's schema"
_PATTERNS = RegexOptions(size_limit=256_000, dfa_size_limit=256_000)


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse a schema that is none, describes no object, or whose checks nobody could bound.

    Raises:
        FieldFault: the field is `form`.
    """
    if schema.get("type") != "object":
        raise fault_of('must describe an object: its type must be "object"')
    cost_of(schema)
    _validator(schema)


def check_values(schema: dict[str, Any], values: object, size: int) -> None:
    """Refuse values that do not fit a schema that was checked.

    Args:
        schema: as it was asked with.
        values: the parsed JSON.
        size: the bytes that it was parsed from.

    Raises:
        InvalidAnswer: with `errors`, a field and a rule each, where the fields can be told.
    """
    if not isinstance(values, dict):
        raise unfit([(WHOLE, "must be a JSON object")])
    if not cost_of(schema).allows(values, size):
        raise unfit([(WHOLE, "must be smaller: checking them against this schema would take too long")])
    if _validator(schema).is_valid(values):
        return
    faults = list(_Faults(schema).of(values))[:MAX_FAULTS]
    raise unfit(faults or [(WHOLE, _UNFIT)])


def unfit(faults: list[tuple[str, str]]) -> InvalidAnswer:
    """The refusal of values, with each field and the rule that it breaks."""
    field, rule = faults[0]
    return InvalidAnswer(f"{field} {rule}.", errors=[{"field": name, "rule": rule} for name, rule in faults])


def resolved(root: dict[str, Any], schema: object) -> dict[str, Any]:
    """A part of a schema, looked up where it refers to another; {} for what says nothing.

    A reference with words beside it stays as it is but for annotations, which win over those of its target.
    """
    while isinstance(schema, dict) and "$ref" in schema:
        _, place, name = schema["$ref"].split("/")
        own = {word: value for word, value in schema.items() if word in {"title", "description", "default"}}
        if len(own) + 1 < len(schema):
            return schema
        target = root[place][name]
        schema = target | own if isinstance(target, dict) else target
    return schema if isinstance(schema, dict) else {}


def _validator(schema: dict[str, Any]) -> Draft202012Validator:
    try:
        return Draft202012Validator(schema, validate_formats=True, pattern_options=_PATTERNS, offline=True)
    except (ValidationError, ReferencingError, ValueError):
        raise fault_of(f"must be a JSON Schema ({DRAFT})") from None


class _Faults:
    """Finds the members that do not fit, each by asking whether it alone fits its own part of the schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._parts: ValidatorMap = _map_for(
            {"$schema": DRAFT} | schema, validate_formats=True, pattern_options=_PATTERNS, offline=True
        )

    def of(self, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Every field that is missing, too much or wrong."""
        yield from self._object(self._schema, values, pointer="#", prefix="")

    def _object(
        self, schema: dict[str, Any], values: dict[str, Any], *, pointer: str, prefix: str
    ) -> Iterator[tuple[str, str]]:
        properties = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in values:
                yield prefix + name, "is required"
        for name, value in values.items():
            if name in properties:
                yield from self._member(
                    properties[name], value, f"{pointer}/properties/{_escaped(name)}", prefix + name
                )
            elif schema.get("additionalProperties") is False and "patternProperties" not in schema:
                yield prefix + name, "is no field of this form"

    def _member(self, schema: object, value: object, pointer: str, field: str) -> Iterator[tuple[str, str]]:
        validator = self._parts.get(pointer)
        if validator is None or validator.is_valid(value):
            return
        if isinstance(schema, dict) and set(schema) >= {"$ref"}:
            pointer = schema["$ref"]
        part = resolved(self._schema, schema)
        inner: list[tuple[str, str]] = []
        # Each level is checked once more by the next, so looking goes on for a few of them only.
        if isinstance(value, dict) and pointer.count("/properties/") < MAX_LEVELS:
            inner = list(self._object(part, value, pointer=pointer, prefix=f"{field}."))
        yield from inner or [(field, rule_of(part))]


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
