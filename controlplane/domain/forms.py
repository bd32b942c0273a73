"""Forms: what a durable question asks for, read strictly, and how its values are drawn, taken and judged."""

from typing import Any

import msgspec

from controlplane.domain import json_text
from controlplane.domain.answers import check_choices
from controlplane.domain.digests import canonical
from controlplane.domain.errors import FieldFault
from controlplane.domain.form_fields import Field, FieldType, Option, fields
from controlplane.domain.form_kinds import Form, FormKind
from controlplane.domain.form_schemas import check_schema
from controlplane.domain.form_sent import values_from
from controlplane.domain.form_values import check_payload, response_of, values_of

__all__ = [
    "Field",
    "FieldType",
    "Form",
    "FormKind",
    "Option",
    "alike",
    "check_payload",
    "fields",
    "kept",
    "read",
    "response_of",
    "stored",
    "values_from",
    "values_of",
]

MAX_FORM = 64 * 1024

_MEMBERS = {
    "options": "a list of strings",
    "yes_label": "a string",
    "no_label": "a string",
    "schema": "an object",
    "editable": "true or false",
}
_TYPES: dict[str, type] = {"options": list, "yes_label": str, "no_label": str, "schema": dict, "editable": bool}


def read(raw: bytes) -> Form:
    """A form as it comes from outside.

    Args:
        raw: JSON in the strict reading of `json_text`.

    Raises:
        InvalidBody: it is no strict JSON.
        FieldFault: it is too large, has a member that is unknown or not as it must be, or a schema that is not taken.
    """
    if len(raw) > MAX_FORM:
        raise FieldFault("form", f"must have at most {MAX_FORM} bytes of JSON")
    members = json_text.parse_plain(raw)
    if not isinstance(members, dict):
        raise FieldFault("form", "must be an object")
    form = _form({name: value for name, value in members.items() if value is not None})
    if form.kind is FormKind.FORM:
        check_schema(form.schema or {})
    else:
        _check_choices(form)
    return form


def stored(raw: bytes) -> Form:
    """A form that was read before, as it is kept; its rules are not asked again."""
    return _form({name: value for name, value in msgspec.json.decode(raw).items() if value is not None})


def kept(raw: bytes) -> bytes:
    """A form's JSON as it is kept: without white space, its members in their order, which is that of the fields."""
    return msgspec.json.format(raw, indent=-1)


def alike(one: bytes | None, other: bytes | None) -> bool:
    """Whether two forms ask for the same; the order of their members is for the eye alone."""
    return one is not None and other is not None and canonical(one) == canonical(other)


def _form(members: dict[str, Any]) -> Form:
    kind = members.pop("kind", None)
    if kind not in set(FormKind):
        raise FieldFault("form", "its kind must be one of " + ", ".join(FormKind))
    for name, value in members.items():
        if name not in _MEMBERS:
            raise FieldFault("form", "must have no members but kind, " + ", ".join(_MEMBERS))
        strings = name != "options" or all(isinstance(each, str) for each in value)
        if not isinstance(value, _TYPES[name]) or not strings:
            raise FieldFault("form", f"its {name} must be {_MEMBERS[name]}")
    if (kind == FormKind.FORM) != ("schema" in members):
        raise FieldFault("form", "its schema goes with the kind form, which needs it, and with no other")
    for name in {"options", "yes_label", "no_label"} & set(members) if kind == FormKind.FORM else ():
        raise FieldFault("form", f"its {name} goes with another kind; a form says it in its schema")
    if members.get("editable") and kind != FormKind.FORM:
        raise FieldFault("form", "its editable goes with the kind form, and with no other")
    options = members.pop("options", None)
    return Form(kind=FormKind(kind), options=None if options is None else tuple(options), **members)


def _check_choices(form: Form) -> None:
    try:
        check_choices(form.choices)
    except FieldFault as fault:
        raise FieldFault("form", f"its {fault.field} {fault.rule}") from None
