"""The schema of a form: of one piece, without references, as the control plane takes it and a page can draw it."""

from collections.abc import Mapping
from typing import Any

from holdshort._ai_forms import schema_of

_REF = "#/$defs/"
_NULL = {"type": "null"}
_BY_NAME = "properties"
# What describes a whole place, beside a reference or a choice that says what stands there.
_BESIDE = ("title", "description", "default")
_DATA = (*_BESIDE, "enum", "const")


def form_schema(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type, of one piece.

    Args:
        kind: a struct, dataclass, TypedDict or one of pydantic's models.

    Raises:
        TypeError: it is no object's, or holds itself.
    """
    whole = schema_of(kind)
    known = whole.pop("$defs", {})
    piece: dict[str, Any] = _inlined(whole, known, ())
    return piece


def _inlined(schema: Any, known: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, known, inside) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(_REF)
        if name in inside or name not in known:
            raise TypeError(f"a form cannot hold {name!r} in itself")
        return {**_inlined(known[name], known, (*inside, name)), **_beside(schema)}
    if "anyOf" in schema:
        return {**_optional(_inlined(schema["anyOf"], known, inside)), **_beside(schema)}
    return {word: _member(word, value, known, inside) for word, value in schema.items()}


def _member(word: str, value: Any, known: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if word in _DATA:
        return value
    if word == _BY_NAME:
        return {name: _inlined(each, known, inside) for name, each in value.items()}
    return _inlined(value, known, inside)


def _beside(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {word: schema[word] for word in _BESIDE if word in schema}


def _optional(choices: list[Any]) -> dict[str, Any]:
    """One type or nothing, as a page can draw it; several types stay as they are."""
    there = [each for each in choices if each != _NULL]
    if len(there) != 1 or len(there) == len(choices) or "const" in there[0]:
        return {"anyOf": choices}
    only = dict(there[0])
    if isinstance(only.get("type"), str):
        only["type"] = [only["type"], "null"]
    if "enum" in only:
        only["enum"] = [*only["enum"], None]
    return only if only.keys() & {"type", "enum"} else {"anyOf": choices}
