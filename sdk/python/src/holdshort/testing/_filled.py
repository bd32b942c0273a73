"""What people fill in, over the book: a form is checked when it is asked with, and its values when they come."""

from typing import Any

from holdshort._choices import Choices, checked_choices
from holdshort._errors import InvalidField
from holdshort._forms import LONGEST_TEXT, check_schema, held_against
from holdshort._wire import Form
from holdshort.testing import _schemas
from holdshort.testing._book import Ask, Refusal
from holdshort.testing._questions import answer_to
from holdshort.testing._visits import invalid

_BOOLEANS = {True: "yes", False: "no"}
_WITH_CHOICES = ("text", "yes_no", "multiple_choice")


def check_members(form: Any) -> None:
    """Refuse a form that says what nobody reads."""
    if isinstance(form, dict) and not form.keys() <= set(Form.__struct_fields__):
        raise invalid("form", f"must have no members but {', '.join(Form.__struct_fields__)}")


def check(ask: Ask) -> None:
    """Refuse a form that nobody could fill in."""
    form = ask.form
    if form is None:
        return
    if form.kind not in {*_WITH_CHOICES, "form"}:
        raise invalid("form.kind", "must be text, yes_no, multiple_choice or form")
    if (form.kind == "form") != (form.schema is not None):
        raise invalid("form.schema", "goes with the kind form, and with no other")
    if form.editable and form.schema is None:
        raise invalid("form.editable", "goes with the kind form, and with no other")
    try:
        _check_content(form)
    except InvalidField as fault:
        raise invalid("form", fault.message) from fault
    if form.editable:
        _check_payload(ask, form)


def _check_content(form: Form) -> None:
    if form.schema is None:
        _choices(form)
    else:
        check_schema(form.schema)
        _schemas.check(form.schema)


def response_to(ask: Ask, values: Any, response: Any, decision: str) -> Any:
    """What the agent gets as data: the values of an approval that was asked with a form, else what was sent."""
    form = ask.form
    if form is None or decision != "approved":
        if values is not None:
            raise Refusal("invalid_answer", "values go with an approval that was asked with a form")
        return response
    if response is not None:
        raise invalid("response", "is made from the values where a question has a form; send values alone")
    known = {"original": ask.payload} if form.editable else {}
    # What may be edited and was not stands as it was.
    filled = ask.payload if form.editable and values is None else values
    return {"values": _fitting(form, filled), **known}


def _check_payload(ask: Ask, form: Form) -> None:
    if ask.payload is None:
        raise invalid("payload", "is required with a form that is editable")
    try:
        _fitting(form, ask.payload)
    except Refusal as misfit:
        raise invalid("payload", f"must fit the form's schema: {misfit}") from misfit


def _fitting(form: Form, values: Any) -> Any:
    if form.schema is None:
        said = _BOOLEANS.get(values, values) if form.kind == "yes_no" and isinstance(values, bool) else values
        text = said if isinstance(said, str) and len(said.encode()) <= LONGEST_TEXT else ""
        return answer_to(_choices(form), text)
    try:
        held_against(form.schema, values)
    except ValueError as misfit:
        raise Refusal("invalid_answer", str(misfit)) from misfit
    return values


def _choices(form: Form) -> Choices:
    return checked_choices(form.kind, form.options, form.yes_label, form.no_label)
