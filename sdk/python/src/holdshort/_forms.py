"""What people fill in: said before a question is asked, and what comes back is held against it before code sees it."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from holdshort._choices import checked_choices, invalid
from holdshort._errors import MissingExtra
from holdshort._feedback_errors import ValuesInvalid
from holdshort._form_schemas import form_schema
from holdshort._step_results import to_model
from holdshort._threads import in_thread
from holdshort._wire import ApprovalResult, Form

LONGEST_TEXT = 16 * 1024
FormKind = Literal["text", "yes_no", "multiple_choice", "form"]


class Sought:
    """The values that a question asks for.

    Args:
        form: what is sent.
        kind: the type that the values become; None for plain JSON.
    """

    def __init__(self, form: Form, kind: Any = None) -> None:
        self.form = form
        self._kind = kind

    async def ready(self) -> None:
        """Return once what comes back can be held against the schema.

        Raises:
            MissingExtra: the extra `forms` is not installed.
            InvalidField: the schema is none.
        """
        if self.form.schema is not None and self._kind is None:
            schema = self.form.schema
            await in_thread(lambda: check_schema(schema), "jsonschema")

    def fitting(self, result: ApprovalResult) -> ApprovalResult:
        """The result with values that fit; those of a type as that type.

        Raises:
            ValuesInvalid: it is approved, and its values do not fit.
        """
        if not result.approved:
            return result
        if not isinstance(result.data, dict) or "values" not in result.data:
            raise _misfit(result, "it was approved without values")
        original = result.data.get("original")
        try:
            values = self._fit(result.data["values"])
            if original is not None:
                original = self._converted(original)
        except ValueError as misfit:
            raise _misfit(result, str(misfit)) from misfit
        return replace(result, values=values, original=original)

    def _fit(self, values: Any) -> Any:
        if self.form.schema is None:
            return _chosen(self.form, values)
        if self._kind is not None:
            return self._converted(values)
        held_against(self.form.schema, values)
        return values

    def _converted(self, values: Any) -> Any:
        if self._kind is None:
            return values
        try:
            return msgspec.convert(values, self._kind, str_keys=True, dec_hook=to_model)
        except msgspec.ValidationError as misfit:
            raise ValueError(str(misfit)) from misfit


def of_question(
    kind: str | None, options: Sequence[str] | None, schema: Any, *, yes_label: str | None, no_label: str | None
) -> Sought:
    """What `ask` seeks: the kind is form where a schema is given, multiple_choice where options are, else text.

    Raises:
        InvalidField: nobody could answer that.
        TypeError: the schema is a type that no form can be made of.
    """
    if (kind == "form") != (schema is not None) and (kind is not None or options is not None):
        raise invalid("schema", "goes with the kind form, and with no other")
    if schema is not None:
        if yes_label is not None or no_label is not None:
            raise invalid("yes_label", "goes with the kind yes_no, and with no other")
        return _of_schema(schema, editable=False)
    if kind == "secret":
        raise invalid("kind", "must not be secret, as the answer is kept; human_feedback asks for what leaves no trace")
    choices = checked_choices(kind, options, yes_label, no_label)
    listed = None if choices.options is None else list(choices.options)
    return Sought(Form(kind=choices.kind, options=listed, yes_label=yes_label, no_label=no_label))


def of_payload(form: Form | None, schema: Any, payload: Any, *, editable: bool) -> Sought | None:
    """What `pause` seeks: nothing, a form as it is given, one of a schema, or the payload with changes.

    Raises:
        InvalidField: what is editable needs a schema and a payload; a form says all of that itself.
        TypeError: the schema is a type that no form can be made of.
    """
    if form is not None:
        if schema is not None or editable:
            raise invalid("form", "says itself what its schema is and whether it is editable")
        return Sought(form)
    if editable and (schema is None or payload is None):
        raise invalid("editable", "needs the payload that may be edited, and the schema of what it may become")
    return None if schema is None else _of_schema(schema, editable=editable)


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse what is no JSON Schema (2020-12) of an object.

    Raises:
        MissingExtra: the extra `forms` is not installed.
        InvalidField: it is none.
    """
    found = _jsonschema()
    if schema.get("type") != "object":
        raise invalid("schema", 'must describe an object: its type must be "object"')
    try:
        found.Draft202012Validator.check_schema(schema)
    except found.SchemaError as fault:
        raise invalid("schema", f"is no JSON Schema: {fault.message}") from fault


def held_against(schema: Mapping[str, Any], values: Any) -> None:
    """Refuse what does not fit a JSON Schema; nothing that it refers to elsewhere is fetched.

    Raises:
        ValueError: the values do not fit, or the schema refers to elsewhere.
    """
    found = _jsonschema()
    from referencing import Registry  # noqa: PLC0415  # comes with jsonschema
    from referencing.exceptions import Unresolvable  # noqa: PLC0415

    kind = found.Draft202012Validator
    try:
        kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER).validate(values)
    except found.ValidationError as misfit:
        raise ValueError(f"{misfit.json_path}: {misfit.message}") from misfit
    except Unresolvable as elsewhere:
        raise ValueError(f"the schema refers to elsewhere: {elsewhere}") from elsewhere


def _jsonschema() -> Any:
    try:
        import jsonschema  # noqa: PLC0415  # of the extra
    except ImportError as missing:
        raise MissingExtra("a JSON Schema is checked with jsonschema: pip install 'holdshort[forms]'") from missing
    return jsonschema


def _of_schema(schema: Any, *, editable: bool) -> Sought:
    if isinstance(schema, Mapping):
        return Sought(Form(kind="form", schema=dict(schema), editable=editable))
    return Sought(Form(kind="form", schema=form_schema(schema), editable=editable), schema)


def _chosen(form: Form, values: Any) -> str:
    known = {"yes_no": ["yes", "no"], "multiple_choice": form.options or []}.get(form.kind)
    fits = isinstance(values, str) and values.strip() and len(values.encode()) <= LONGEST_TEXT
    if not fits or (known is not None and values not in known):
        raise ValueError("this is no answer to what was asked")
    return str(values)


def _misfit(result: ApprovalResult, why: str) -> ValuesInvalid:
    known = {"approval_id": result.approval_id, "decision": result.decision, "data": result.data}
    return ValuesInvalid(
        f"approval {result.approval_id} has values that do not fit what was asked: {why}", details=known
    )
