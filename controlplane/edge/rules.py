"""What a field may be, in words, read from its type: the rule that a refusal names beside the field."""

from typing import Any

import msgspec
from msgspec import inspect


def rule_of(kind: type[msgspec.Struct], field: str) -> tuple[str, str]:
    """The name under which callers know a field, and its rule.

    Args:
        kind: the struct that the field belongs to.
        field: the field's name in that struct.
    """
    described = inspect.type_info(kind)
    fields = described.fields if isinstance(described, inspect.StructType) else ()
    for each in fields:
        if field in {each.name, each.encode_name}:
            return _name(each.type) or each.encode_name, f"must be {_words(each.type)}"
    return field, "is not as it must be"


def _name(kind: inspect.Type) -> str | None:
    """The name that a parameter goes by outside, where it differs."""
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, map(_name, kind.types)), None)
    extra = kind.extra if isinstance(kind, inspect.Metadata) else None
    name = (extra or {}).get("name")
    return name if isinstance(name, str) else None


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata():
            rule = (kind.extra or {}).get("rule")
            return rule if isinstance(rule, str) else _words(kind.type)
        case inspect.UnionType():
            return " or ".join(_words(each) for each in kind.types)
        case inspect.ListType():
            return f"a list{_size(kind, 'items')}, each {_words(kind.item_type)}"
        case _:
            return _choice(kind) or _simple(kind)


def _choice(kind: inspect.Type) -> str | None:
    if isinstance(kind, inspect.EnumType):
        return "one of " + ", ".join(str(each.value) for each in kind.cls)
    return " or ".join(map(str, kind.values)) if isinstance(kind, inspect.LiteralType) else None


def _simple(kind: inspect.Type) -> str:
    words: dict[type[inspect.Type], str] = {
        inspect.BoolType: "true or false",
        inspect.FloatType: "a number",
        inspect.NoneType: "null",
        inspect.StructType: "an object",
    }
    if isinstance(kind, inspect.StrType):
        return f"a string{_size(kind, 'characters')}"
    if isinstance(kind, inspect.IntType):
        return f"a whole number{_range(kind)}"
    return words.get(type(kind), "a value of the right kind")


def _size(kind: Any, unit: str) -> str:
    return _bounds(kind.min_length, kind.max_length, unit)


def _range(kind: inspect.IntType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    return "" if kind.ge is None else f" of at least {kind.ge}"


def _bounds(least: int | None, most: int | None, unit: str) -> str:
    if least is not None and most is not None:
        return f" of {least} to {most} {unit}"
    if most is not None:
        return f" of at most {most} {unit}"
    return "" if least is None else f" of at least {least} {unit}"
