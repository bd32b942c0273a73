"""What a page draws of a form comes back as the same JSON, or as what a person changed; nothing is guessed at."""

import json
from typing import Any

import msgspec
import pytest

from controlplane.domain import forms
from controlplane.domain.approvals import ApprovalStatus
from controlplane.domain.cases import Answer, settle
from controlplane.domain.digests import canonical
from controlplane.domain.errors import FieldFault, InvalidAnswer
from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.form_answers import answered
from controlplane.domain.form_cost import cost_of
from controlplane.domain.forms import Field, FieldType, Form
from tests.factories import approval, case

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "to": {"type": "string", "title": "Receiver", "description": "Who gets it"},
        "body": {"type": "string", "maxLength": 5000},
        "count": {"type": "integer", "minimum": 1},
        "amount": {"type": "number"},
        "urgent": {"type": "boolean"},
        "mode": {"$ref": "#/$defs/Mode"},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "address": {"type": "object", "properties": {"street": {"type": "string"}}},
    },
    "required": ["to", "count", "note"],
    "$defs": {"Mode": {"oneOf": [{"const": 1, "title": "Slow"}, {"const": 2, "title": "Fast"}]}},
}
PAYLOAD = (
    rb'{"to":"ann","body":"one\r\ntwo","count":3,"amount":1.10,"urgent":false,"mode":2,"tags":["a","c"],'
    rb'"note":null,"address":{"street":"High \u0053t"},"beyond":[1.0]}'
)


def form(**more: Any) -> Form:
    return forms.read(json.dumps({"kind": "form", "schema": SCHEMA, **more}).encode())


def sent(fields: list[Field], **changes: list[str]) -> dict[str, list[str]]:
    """What a browser sends of fields as they were drawn: lines end in CRLF, and boxes that are off are not there."""
    found = {}
    for field in fields:
        texts = (
            list(field.chosen)
            if field.type is FieldType.CHOICES
            else [field.value.replace("\r\n", "\n").replace("\n", "\r\n")]
        )
        found |= {field.name: texts} if texts else {}
    return found | changes


def test_each_type_has_its_field():
    drawn = forms.fields(form())
    assert {field.name: field.type.value for field in drawn} == {
        "to": "text",
        "body": "long",
        "count": "integer",
        "amount": "number",
        "urgent": "yes_no",
        "mode": "choice",
        "tags": "choices",
        "note": "text",
        "address": "json",
    }
    assert (drawn[0].label, drawn[0].help, drawn[0].required) == ("Receiver", "Who gets it", True)
    assert [(each.value, each.label) for each in drawn[5].options] == [("1", "Slow"), ("2", "Fast")]
    assert (drawn[7].required, drawn[7].nullable) == (False, True)


def test_what_a_person_left_alone_is_the_payload_to_the_digit():
    editable = form(editable=True)
    back = forms.values_from(editable, sent(forms.fields(editable, PAYLOAD)), PAYLOAD)
    assert canonical(back) == canonical(PAYLOAD)
    assert b'"amount":1.10' in back


def test_what_a_person_changed_has_its_type():
    editable = form(editable=True)
    changes = {"to": ["bob"], "count": [" 4 "], "amount": [""], "urgent": ["yes"], "mode": ["1"], "tags": ["c", "b"]}
    changes |= {"note": ["x"], "address": ['{"street": 1}']}
    back = json.loads(forms.values_from(editable, sent(forms.fields(editable, PAYLOAD), **changes), PAYLOAD))
    assert back == {
        "to": "bob",
        "body": "one\r\ntwo",
        "count": 4,
        "urgent": True,
        "mode": 1,
        "tags": ["b", "c"],
        "note": "x",
        "address": {"street": 1},
        "beyond": [1.0],
    }


@pytest.mark.parametrize(
    ("field", "texts"),
    [
        ("to", [""]),
        ("to", ["a", "b"]),
        ("count", [""]),
        ("count", ["1.0"]),
        ("count", ["1e3"]),
        ("count", ["٣"]),
        ("amount", ["1,5"]),
        ("amount", ["NaN"]),
        ("amount", ["1e999"]),
        ("urgent", ["true"]),
        ("mode", ["Slow"]),
        ("tags", ["a", "a"]),
        ("tags", ["d"]),
        ("address", ["{street: 1}"]),
        ("address", ['{"a":1,"a":2}']),
        ("beyond", ["1"]),
    ],
)
def test_what_is_no_value_of_its_field_is_refused_with_its_name(field: str, texts: list[str]):
    good = {"to": ["ann"], "count": ["1"]}
    assert json.loads(forms.values_from(form(), good)) == {"to": "ann", "count": 1, "note": None}
    with pytest.raises(InvalidAnswer) as refused:
        forms.values_from(form(), good | {field: texts})
    assert [each["field"] for each in refused.value.extra["errors"]] == [field]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]},
        {"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}]},
        {"type": "object", "patternProperties": {"^x": {"type": "number"}}},
    ],
)
def test_an_unusual_schema_is_one_text_of_json(schema: dict[str, Any]):
    unusual = forms.read(json.dumps({"kind": "form", "schema": schema, "editable": True}).encode())
    (field,) = forms.fields(unusual, b'{"a": 1.0,"b":2}')
    assert (field.name, field.type) == ("", FieldType.JSON)
    assert forms.values_from(unusual, {"": [field.value]}, b'{"a": 1.0,"b":2}') == b'{"a": 1.0,"b":2}'
    assert forms.values_from(unusual, {"": ['{"b":3}']}, b'{"a": 1.0,"b":2}') == b'{"b":3}'


@pytest.mark.parametrize("value", [["b", "a"], ["a", "a"], ["d"], [["a"]], 5, "a"])
def test_a_value_that_its_field_cannot_hold_is_drawn_as_json(value: Any):
    editable = form(editable=True)
    raw = msgspec.json.encode({"to": "a", "count": 1, "note": None, "tags": value})
    drawn = forms.fields(editable, raw)
    assert next(field.type for field in drawn if field.name == "tags") is FieldType.JSON
    assert canonical(forms.values_from(editable, sent(drawn), raw)) == canonical(raw)


def hostile() -> dict[str, dict[str, Any]]:
    doubling = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(14)} | {
        "a14": {"type": "string"}
    }
    chain = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(900)} | {"a900": {}}
    circle = {"a": {"properties": {"a": {"$ref": "#/$defs/b"}}}, "b": {"items": {"$ref": "#/$defs/a"}}}
    first = {"properties": {"a": {"$ref": "#/$defs/a0"}}}
    return {
        "references that double": first | {"$defs": doubling},
        "a chain of references": first | {"$defs": chain},
        "a circle of references": {"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": circle},
        "a circle to the top": {"properties": {"a": {"$ref": "#"}}},
        "lists to compare with": {"properties": {"a": {"items": {"enum": [[i] for i in range(5000)]}}}},
        "numbers to compare with": {"properties": {"a": {"items": {"enum": [i + 0.5 for i in range(5000)]}}}},
        "a pattern that backtracks": {"properties": {"a": {"pattern": r"^(?=(a+)+$)\1"}}},
        "a pattern that grows": {"properties": {"a": {"pattern": "((a{100}){100}){100}"}}},
        "what was not evaluated": {"properties": {}, "unevaluatedProperties": False},
        "a fine multiple": {"properties": {"a": {"multipleOf": 1e-300}}},
    }


@pytest.mark.parametrize("name", hostile())
def test_a_schema_whose_checks_have_no_bound_is_refused(name: str):
    with pytest.raises(FieldFault) as refused:
        forms.read(json.dumps({"kind": "form", "schema": {"type": "object"} | hostile()[name]}).encode())
    assert refused.value.field == "form"


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ({"items": {"allOf": [{"not": {"type": "number"}}] * 700}}, ["1"] * 60_000),
        ({"items": {"enum": [i + 0.5 for i in range(30)]}}, [29.5] * 50_000),
        ({"pattern": "^[ab]*a[ab]{1,400}c"}, "ab" * 100_000),
        ({"uniqueItems": True}, [10**25 + i for i in range(5_000)]),
        ({"items": {"allOf": [{"format": "iri"}] * 100}}, ["http://a/" + "b/" * 30] * 3_000),
    ],
)
def test_values_that_would_take_long_to_check_are_refused_unchecked(part: dict[str, Any], value: Any):
    large = forms.read(json.dumps({"kind": "form", "schema": {"type": "object", "properties": {"a": part}}}).encode())
    raw = msgspec.json.encode({"a": value})
    assert not cost_of(large.schema or {}).allows({"a": value}, len(raw))
    with pytest.raises(InvalidAnswer) as refused:
        forms.values_of(large, raw[: forms.MAX_FORM] if len(raw) > 4 * forms.MAX_FORM else raw)
    assert "errors" in refused.value.extra


def test_an_ordinary_form_is_far_from_any_bound():
    names = [f"field_{i}" for i in range(100)]
    part = {"type": "string", "maxLength": 5000, "pattern": "^[^<>]*$", "format": "email"}
    schema = {"type": "object", "properties": dict.fromkeys(names, part | {"title": "T"}), "required": names}
    cost = cost_of(schema)
    value = dict.fromkeys(names, "someone@example.org")
    assert cost.allows(value, 250 * 1024 // 4)
    assert forms.values_of(Form(kind=forms.FormKind.FORM, schema=schema), msgspec.json.encode(value))


def test_the_table_refuses_an_approval_whose_values_nobody_judged():
    question = case(approval("a", form=b'{"kind":"text"}'))
    person = Actor(ActorKind.PERSON, "ann", "api")
    unjudged = Answer(status=ApprovalStatus.APPROVED, actor=person, response=b'{"values":"x"}', values=b'"x"')
    with pytest.raises(InvalidAnswer):
        settle(question, "apr_a", unjudged)
    after = settle(question, "apr_a", answered(Form(kind=forms.FormKind.TEXT), unjudged, None))
    assert after.approval("apr_a").response == b'{"values":"x"}'
    with pytest.raises(InvalidAnswer):
        answered(None, unjudged, None)
