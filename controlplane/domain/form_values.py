"""The values of an answer: whether they are one to what was asked, and the form in which they are kept."""

import json

import msgspec

from controlplane.domain import json_text
from controlplane.domain.answers import NO, YES, answer_to
from controlplane.domain.digests import canonical
from controlplane.domain.errors import FieldFault, InvalidAnswer, InvalidBody
from controlplane.domain.form_kinds import Form, FormKind
from controlplane.domain.form_schemas import WHOLE, check_values, unfit

MAX_TEXT = 16 * 1024
MAX_VALUES = 256 * 1024


def values_of(form: Form, raw: bytes | None, payload: bytes | None = None) -> bytes:
    """The values that an answer approves, as canonical JSON.

    Args:
        form: what was asked for.
        raw: the values as JSON; None or null when there are none.
        payload: what was asked about; it stands where values are absent and the form is editable.

    Raises:
        InvalidAnswer: they do not fit; `errors` names fields and rules.
    """
    if raw is None or raw.strip() == b"null":
        raw = payload if form.editable else None
    if raw is None:
        raise unfit([(WHOLE, "must be given: this question is answered with values")])
    if len(raw) > MAX_VALUES:
        raise unfit([(WHOLE, f"must have at most {MAX_VALUES} bytes of JSON")])
    try:
        values = json_text.parse_plain(raw)
    except InvalidBody as fault:
        raise unfit([(WHOLE, f"must be JSON that every parser reads alike: {fault.message}")]) from None
    if form.kind is FormKind.FORM:
        check_values(form.schema or {}, values, len(raw))
        return canonical(raw)
    return _canonical_text(_one(form, values))


def check_payload(form: Form, payload: bytes | None) -> None:
    """Refuse a payload that cannot be edited with its form.

    Raises:
        FieldFault: there is none, or it does not fit the schema.
    """
    if not form.editable:
        return
    if payload is None:
        raise FieldFault("payload", "is required with a form that is editable")
    try:
        values_of(form, payload)
    except InvalidAnswer as fault:
        raise FieldFault("payload", f"must fit the form's schema: {fault.message.rstrip('.')}") from None


def _one(form: Form, value: json_text.JSON) -> str:
    """The answer to a question that takes one."""
    if form.kind is FormKind.YES_NO and isinstance(value, bool):
        return YES if value else NO
    if not isinstance(value, str):
        raise unfit(
            [(WHOLE, "must be a string, or true or false" if form.kind is FormKind.YES_NO else "must be a string")]
        )
    if len(value.encode()) > MAX_TEXT:
        raise unfit([(WHOLE, f"must have at most {MAX_TEXT} bytes")])
    try:
        return answer_to(form.choices, value)
    except InvalidAnswer as fault:
        raise InvalidAnswer(fault.message, errors=[{"field": WHOLE, "rule": _rule(form)}]) from None


def _rule(form: Form) -> str:
    match form.kind:
        case FormKind.YES_NO:
            return "must be a yes or a no"
        case FormKind.MULTIPLE_CHOICE:
            return "must be one of the options"
        case _:
            return "must not be empty"


def _canonical_text(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def response_of(values: bytes, original: bytes | None) -> bytes:
    """What is kept as the answer's response: the values, and what they were before where they could be edited."""
    members = {"values": msgspec.Raw(values)}
    if original is not None:
        members["original"] = msgspec.Raw(original)
    return msgspec.json.encode(members)
