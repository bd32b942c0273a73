"""Fields: what a page draws of a form. What cannot be a field of its own is one text of JSON."""

from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain import json_text
from controlplane.domain.form_kinds import Form, FormKind, Schema
from controlplane.domain.form_schemas import resolved
from controlplane.domain.form_words import hint_of
from controlplane.domain.json_text import JSON, Number

ANSWER = "answer"
LONG_FROM = 80

# With one of these at its top a schema says more than its properties do, which no single field could show.
_MORE = frozenset({"allOf", "anyOf", "oneOf", "if", "$ref", "patternProperties", "dependentSchemas"})
_NULL = {"type": "null"}
_PYTHON: dict[str, type] = {"string": str, "integer": Number, "number": Number, "boolean": bool}
_YES_NO = ("Yes", "No")


class FieldType(StrEnum):
    """How a field is drawn: a line or lines of text, a number, a yes or no, one option, several, or JSON as text."""

    TEXT = "text"
    LONG = "long"
    NUMBER = "number"
    INTEGER = "integer"
    YES_NO = "yes_no"
    CHOICE = "choice"
    CHOICES = "choices"
    JSON = "json"


class Option(Struct, frozen=True):
    """What may be chosen: what is sent, what is shown, and the JSON that it stands for."""

    value: str
    label: str
    json: bytes


class Field(Struct, frozen=True, kw_only=True):
    """One field of a page.

    `name` is what its value is sent under, empty where one field holds the whole object; `rule` is what it takes, in
    words; `value` what it holds at first, `chosen` the options that are chosen at first where several may be. Left
    empty a `required` one is refused (but `choices` are an empty list), a `nullable` one is null, any other is absent.
    """

    name: str
    label: str
    type: FieldType
    help: str = ""
    rule: str = ""
    required: bool = True
    nullable: bool = False
    options: tuple[Option, ...] = ()
    value: str = ""
    chosen: tuple[str, ...] = ()


def fields(form: Form, payload: bytes | None = None) -> list[Field]:
    """What a page draws.

    Args:
        form: what is asked for.
        payload: what is asked about; the fields hold its values where the form is editable.
    """
    if form.kind is not FormKind.FORM:
        return [_of_one(form)]
    schema = form.schema or {}
    if not by_property(schema):
        return [_whole(schema, payload if form.editable else None)]
    given = members_of(payload) if form.editable else {}
    return [_field(schema, name, part, given.get(name)) for name, part in schema["properties"].items()]


def by_property(schema: Schema) -> bool:
    """Whether each property can be a field, and together they are the whole."""
    properties = schema.get("properties") or {}
    return bool(properties) and not _MORE & set(schema) and set(schema.get("required", ())) <= set(properties)


def members_of(payload: bytes | None) -> dict[str, bytes]:
    """The members of a payload as their bytes; none where it is no object."""
    if payload is None or not payload.lstrip().startswith(b"{"):
        return {}
    return {name: bytes(value) for name, value in _MEMBERS.decode(payload).items()}


def _of_one(form: Form) -> Field:
    """The one field of a question that takes one answer."""
    if form.kind is FormKind.YES_NO:
        options = _yes_no(form.yes_label or _YES_NO[0], form.no_label or _YES_NO[1])
        return Field(name=ANSWER, label="Your answer", type=FieldType.YES_NO, options=options)
    if form.kind is FormKind.MULTIPLE_CHOICE:
        options = tuple(_option(each) for each in form.options or ())
        return Field(name=ANSWER, label="Your answer", type=FieldType.CHOICE, options=options)
    return Field(name=ANSWER, label="Your answer", type=FieldType.LONG)


def _whole(schema: Schema, payload: bytes | None) -> Field:
    return Field(
        name="",
        label=_text(schema, "title") or "Values",
        type=FieldType.JSON,
        help=_text(schema, "description"),
        rule="an object",
        value="" if payload is None else _pretty(payload),
    )


def _field(root: Schema, name: str, part: object, given: bytes | None) -> Field:
    schema, nullable = _without_null(root, resolved(root, part))
    if given is None and "default" in schema:
        given = msgspec.json.encode(schema["default"])
    value = None if given is None else json_text.parse(given)
    type_, options = _type(root, schema, value)
    needed = name in schema_required(root)
    field = Field(
        name=name,
        label=_text(schema, "title") or name,
        type=type_,
        help=_text(schema, "description"),
        rule="" if options else hint_of(schema),
        required=needed and not nullable,
        nullable=needed and nullable,
        options=options,
    )
    if type_ is FieldType.CHOICES:
        return replace(field, chosen=tuple(_shown(each) for each in value) if isinstance(value, list) else ())
    return replace(field, value="" if given is None else _drawn(type_, value, given))


def schema_required(schema: Schema) -> frozenset[str]:
    """The names that an object must have."""
    return frozenset(schema.get("required", ()))


def _without_null(root: Schema, schema: Schema) -> tuple[Schema, bool]:
    """A value that may also be null, as what it is otherwise."""
    parts = [resolved(root, part) for part in schema.get("anyOf", ())]
    others = [part for part in parts if part != _NULL]
    own = {word: value for word, value in schema.items() if word != "anyOf"}
    if len(others) == 1 < len(parts) and set(own) <= {"title", "description", "default"}:
        return others[0] | own, True
    types = schema.get("type")
    if isinstance(types, list) and "null" in types and "enum" not in schema and "const" not in schema:
        rest = [each for each in types if each != "null"]
        return schema | {"type": rest[0] if len(rest) == 1 else rest}, True
    return schema, False


def _type(root: Schema, schema: Schema, value: JSON) -> tuple[FieldType, tuple[Option, ...]]:
    """How a value is drawn: as JSON where the field of its type could not hold what is there."""
    options = _options(schema)
    if options:
        return (FieldType.CHOICE, options) if value is None or _is_one(options, value) else (FieldType.JSON, ())
    several = _options(resolved(root, schema.get("items"))) if schema.get("type") == "array" else ()
    if several:
        return (FieldType.CHOICES, several) if _in_order(several, value) else (FieldType.JSON, ())
    named = schema.get("type")
    python = _PYTHON.get(named) if isinstance(named, str) else None
    if python is None or _MORE & set(schema) or (value is not None and type(value) is not python):
        return FieldType.JSON, ()
    if named == "string":
        return (FieldType.LONG if _is_long(schema, value) else FieldType.TEXT), ()
    return (FieldType.YES_NO, _yes_no(*_YES_NO)) if named == "boolean" else (FieldType(str(named)), ())


def _options(schema: Schema) -> tuple[Option, ...]:
    """The options of a value that is one of a few, when each reads differently; else none."""
    titled = schema.get("oneOf")
    if isinstance(titled, list) and all(isinstance(each, dict) and "const" in each for each in titled):
        options = tuple(_option(each["const"], _text(each, "title")) for each in titled)
    elif "enum" in schema or "const" in schema:
        options = tuple(_option(each) for each in schema.get("enum", [schema.get("const")]))
    else:
        return ()
    values = {each.value for each in options}
    return options if len(values) == len(options) and not values & {"", "null"} else ()


def _is_one(options: tuple[Option, ...], value: JSON) -> bool:
    return not isinstance(value, list | dict) and _shown(value) in {each.value for each in options}


def _in_order(options: tuple[Option, ...], value: JSON) -> bool:
    """Whether boxes can say a list: each item once, in the order of the options."""
    if value is None:
        return True
    if not isinstance(value, list) or not all(_is_one(options, each) for each in value):
        return False
    order = [each.value for each in options]
    places = [order.index(_shown(each)) for each in value]
    return places == sorted(set(places))


def _is_long(schema: Schema, value: JSON) -> bool:
    text = value if isinstance(value, str) else ""
    return not text.isprintable() or len(text) > LONG_FROM or schema.get("maxLength", 0) > LONG_FROM


def _drawn(type_: FieldType, value: JSON, given: bytes) -> str:
    if type_ is FieldType.JSON:
        return _pretty(given)
    if value is None:
        return ""
    return ("yes" if value else "no") if type_ is FieldType.YES_NO else _shown(value)


def _yes_no(yes: str, no: str) -> tuple[Option, ...]:
    return (Option("yes", yes, b"true"), Option("no", no, b"false"))


def _option(value: Any, label: str = "") -> Option:
    encoded = msgspec.json.encode(value)
    shown = value if isinstance(value, str) else encoded.decode()
    return Option(shown, label or shown, encoded)


def _shown(value: JSON) -> str:
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _text(schema: Schema, word: str) -> str:
    found = schema.get(word)
    return found if isinstance(found, str) else ""


def _pretty(raw: bytes) -> str:
    return msgspec.json.format(raw, indent=2).decode()


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
