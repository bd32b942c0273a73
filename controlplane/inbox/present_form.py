"""What a question asks to be filled in: its fields with what was typed and what is wrong, and what came of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from controlplane.domain import forms, json_text
from controlplane.domain.errors import InvalidAnswer, InvalidBody
from controlplane.domain.forms import Field, FieldType, Form
from controlplane.inbox.present_payload import Change, Value, changes, draw
from controlplane.storage.approvals import Shown

# More options than these are a list to open instead of a row of buttons to choose from.
MOST_IN_SIGHT = 8
_LINES = 4
_MOST_LINES = 24


class Choice(Struct, frozen=True):
    """An option: what is sent, what is read, and whether it is chosen."""

    value: str
    label: str
    chosen: bool


class Input(Struct, frozen=True, kw_only=True):
    """A field as it is drawn; `field` is its name in the form, and its number makes its ids."""

    number: int
    field: str
    label: str
    help: str
    rule: str
    type: FieldType
    required: bool
    choices: Sequence[Choice]
    value: str
    lines: int
    fault: str | None

    @property
    def control(self) -> str:
        """How it is drawn: `area`, `line`, `radios`, `list` or `boxes`."""
        if self.type is FieldType.CHOICES:
            return "boxes"
        if self.choices:
            return "radios" if len(self.choices) <= MOST_IN_SIGHT else "list"
        return "area" if self.type in {FieldType.LONG, FieldType.JSON} else "line"


class Asked(Struct, frozen=True, kw_only=True):
    """What a person is asked for: `question` where they answer, `editable` where they may change what they approve."""

    kind: str | None = None
    question: bool = False
    editable: bool = False
    inputs: Sequence[Input] = ()
    fault: str | None = None


def form_of(shown: Shown) -> Form | None:
    """The form of an approval; None for one that is only approved."""
    return None if shown.form is None else forms.stored(shown.form)


def asked(shown: Shown, sent: Mapping[str, Sequence[str]] | None, faults: Mapping[str, str]) -> Asked:
    """What an approval asks for.

    Args:
        shown: the approval.
        sent: what was typed, by the fields' names; None before anything was.
        faults: what is wrong, by the fields' names; what is about the whole stands under any other name.
    """
    form = form_of(shown)
    if form is None:
        return Asked()
    drawn = forms.fields(form, shown.payload)
    inputs = [_input(number, field, sent, faults.get(field.name)) for number, field in enumerate(drawn)]
    named = {field.name for field in drawn}
    whole = next((words for name, words in faults.items() if name not in named), None)
    return Asked(kind=form.kind, question=not form.editable, editable=form.editable, inputs=inputs, fault=whole)


def values_of(shown: Shown, sent: Mapping[str, Sequence[str]]) -> bytes | None:
    """What was typed as the values of an answer; None for an approval without a form.

    Raises:
        InvalidAnswer: something is missing or not as it must be; `errors` names the fields.
    """
    form = form_of(shown)
    if form is None:
        return None
    raw = forms.values_from(form, {name: list(texts) for name, texts in sent.items()}, shown.payload)
    forms.values_of(form, raw, shown.payload)
    return raw


def faults_of(shown: Shown, refusal: InvalidAnswer) -> dict[str, str]:
    """What a refusal says of each field, in a sentence; about the whole under a name that no field has."""
    form = form_of(shown)
    names = [field.name for field in forms.fields(form, shown.payload)] if form is not None else []
    found: dict[str, str] = {}
    errors: Any = refusal.extra.get("errors") or [{"field": "", "rule": ""}]
    for error in errors:
        field, rule = str(error["field"]), str(error["rule"])
        name = _owner(field, names)
        words = f"It {rule}." if name in {field, names[0] if len(names) == 1 else None} else f"{field} {rule}."
        found.setdefault(field if name is None else name, words if rule else refusal.message)
    return found


def answer_of(shown: Shown) -> tuple[Value | None, list[Change]]:
    """What was sent with an answer, and what the person changed of the payload where they could."""
    if shown.response is None:
        return None, []
    try:
        response = json_text.parse(shown.response)
    except InvalidBody:
        return None, []
    if shown.form is None or not isinstance(response, dict) or "values" not in response:
        return draw(response, shown.response), []
    if "original" not in response:
        return draw(response["values"], shown.response), []
    return None, [each for each in changes(response["original"], response["values"]) if not each.same]


def _owner(field: str, names: Sequence[str]) -> str | None:
    """The field that a fault is about: itself, or the one that holds it, or the only one."""
    if field in names:
        return field
    if len(names) == 1:
        return names[0]
    holding = [name for name in names if field.startswith(f"{name}.")]
    return max(holding, key=len, default=None)


def _input(number: int, field: Field, sent: Mapping[str, Sequence[str]] | None, fault: str | None) -> Input:
    texts = list(field.chosen) if sent is None else sent.get(field.name, [])
    value = field.value if sent is None else next(iter(texts), "")
    chosen = set(texts) if field.type is FieldType.CHOICES else {value}
    return Input(
        number=number,
        field=field.name,
        label=field.label,
        help=field.help,
        rule=field.rule,
        type=field.type,
        required=field.required,
        choices=[Choice(each.value, each.label, each.value in chosen) for each in field.options],
        value=value,
        lines=min(_MOST_LINES, max(_LINES, value.count("\n") + 2)),
        fault=fault,
    )
