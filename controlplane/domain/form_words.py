"""What a part of a schema asks for, in words: the rule that a refusal names, and the hint beside a field."""

import json
from typing import Any

_TYPES = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
}
_BOUNDS = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} items"),
    ("maxItems", "at most {} items"),
    ("format", "in the format {}"),
    ("pattern", "of the pattern {}"),
)
_MOST_OPTIONS = 20


def rule_of(schema: dict[str, Any]) -> str:
    """The rule of a value in words, such as "must be a whole number, at least 1"."""
    words = hint_of(schema)
    return f"must be {words}" if words else "must fit the form's schema"


def hint_of(schema: dict[str, Any]) -> str:
    """What a value may be, in words; empty when they would say too little."""
    options = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if options is not None:
        shown = ", ".join(_plain(each) for each in options[:_MOST_OPTIONS])
        return f"one of {shown}" if len(options) <= _MOST_OPTIONS else "one of the options"
    named = schema.get("type")
    kinds = [_TYPES.get(each, each) for each in ([named] if isinstance(named, str) else named or [])]
    bounds = [words.format(schema[name]) for name, words in _BOUNDS if name in schema]
    return ", ".join(([" or ".join(kinds)] if kinds else []) + bounds)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
