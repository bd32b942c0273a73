"""The way back from what a page sends to JSON: by the type of each field, and nothing is guessed at.

What comes back as it was drawn is the payload's own value, to the digit and the line end.
"""

import re
from collections.abc import Mapping

import msgspec

from controlplane.domain import json_text
from controlplane.domain.errors import InvalidAnswer, InvalidBody
from controlplane.domain.form_fields import Field, FieldType, by_property, fields, members_of
from controlplane.domain.form_kinds import Form, FormKind
from controlplane.domain.form_schemas import WHOLE, unfit

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
_TEXTS = frozenset({FieldType.TEXT, FieldType.LONG})


def values_from(form: Form, submitted: Mapping[str, list[str]], payload: bytes | None = None) -> bytes:
    """The values that a page sends, as JSON; whether they fit is for `values_of` to say.

    Args:
        form: what was asked for.
        submitted: the texts under each field's name.
        payload: what was asked about, where the form is editable: what a person left alone is taken from it.

    Raises:
        InvalidAnswer: a field is unknown, missing, given twice or no value of its type; `errors` names each.
    """
    given = members_of(payload) if form.editable else {}
    drawn = fields(form, payload)
    faults = [(name or WHOLE, "is no field of this form") for name in submitted.keys() - {each.name for each in drawn}]
    found: dict[str, bytes | None] = {}
    alone = form.kind is not FormKind.FORM or not by_property(form.schema or {})
    for field in drawn:
        before = (payload if form.editable else None) if alone else given.get(field.name)
        try:
            found[field.name] = _sent(field, submitted.get(field.name, []), before)
        except InvalidAnswer as fault:
            faults.append((field.name or WHOLE, fault.message))
    if faults:
        raise unfit(sorted(faults))
    if alone:
        return found[drawn[0].name] or b"null"
    return _object(given, found)


def _object(given: Mapping[str, bytes], found: Mapping[str, bytes | None]) -> bytes:
    """The payload's members with those that were drawn put in their place, or taken out."""
    members = {name: value for name, value in {**given, **found}.items() if value is not None}
    return msgspec.json.encode({name: msgspec.Raw(value) for name, value in members.items()})


def _sent(field: Field, texts: list[str], given: bytes | None) -> bytes | None:
    """The JSON of what was sent for a field, None for nothing; the refusal's message is the rule alone."""
    if len(set(texts)) < len(texts) or (len(texts) > 1 and field.type is not FieldType.CHOICES):
        raise InvalidAnswer("must be given once")
    if field.type is FieldType.CHOICES:
        return _several(field, texts, given)
    text = _lines(texts[0]) if texts else ""
    if given is not None and text == _lines(field.value):
        return given
    if not (text if field.type in _TEXTS else text.strip()):
        return _empty(field, given)
    return _value(field, text)


def _empty(field: Field, given: bytes | None) -> bytes | None:
    if field.nullable:
        return b"null"
    if not field.required:
        return None
    if field.type in _TEXTS and given is not None:
        return b'""'
    raise InvalidAnswer("is required")


def _value(field: Field, text: str) -> bytes:
    if field.type in _TEXTS:
        return msgspec.json.encode(text)
    if field.type in {FieldType.YES_NO, FieldType.CHOICE}:
        return _chosen(field, text)
    if field.type is FieldType.JSON:
        return _checked(text, "must be JSON")
    whole = field.type is FieldType.INTEGER
    rule = "must be a whole number, such as 12" if whole else "must be a number, such as 1.5"
    if not (_INTEGER if whole else _NUMBER).fullmatch(text.strip()):
        raise InvalidAnswer(rule)
    return _checked(text.strip(), rule)


def _checked(text: str, rule: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    try:
        json_text.check(raw)
    except InvalidBody as fault:
        raise InvalidAnswer(f"{rule}: {fault.message.rstrip('.')}") from None
    return raw


def _several(field: Field, texts: list[str], given: bytes | None) -> bytes | None:
    if given is not None and set(texts) == set(field.chosen):
        return given
    chosen = [_chosen(field, text) for text in texts]
    if not chosen and given is None and not field.required:
        return None
    return b"[" + b",".join(each.json for each in field.options if each.json in chosen) + b"]"


def _chosen(field: Field, text: str) -> bytes:
    for option in field.options:
        if option.value == text:
            return option.json
    raise InvalidAnswer("must be one of the options")


def _lines(text: str) -> str:
    """A text with the ends of its lines as everybody but a browser writes them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
