"""Questions that keep, and payloads that may be edited: labelled fields, faults beside them, and nothing typed lost."""

from typing import Any

import pytest

from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, opened, status_of
from tests.inbox.reading import Page
from tests.inbox.test_hostile_text_is_only_text import HOSTILE

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["to", "amount"],
    "properties": {
        "to": {"type": "string", "title": "Recipient", "description": "Who gets it", "minLength": 3},
        "amount": {"type": "number", "title": "Amount", "maximum": 50},
        "count": {"type": "integer"},
        "urgent": {"type": "boolean"},
        "channel": {"enum": ["mail", "phone"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}},
        "more": {"type": "object"},
    },
}
PAYLOAD = {"to": "Ann", "amount": 12, "channel": "mail", "tags": ["a", "c"], "more": {"x": [1]}}


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


async def response(api: Api, approval: str) -> Any:
    """What is kept as an approval's answer."""
    return (await api.get(f"/approvals/{approval}")).json()["response"]["data"]


@pytest.mark.parametrize(
    ("form", "typed", "values"),
    [
        ({"kind": "text"}, "Two lines\r\nof text", "Two lines\nof text"),
        ({"kind": "yes_no"}, "no", "no"),
        ({"kind": "yes_no", "yes_label": "Book it", "no_label": "Later"}, "yes", "yes"),
        ({"kind": "multiple_choice", "options": ["Lake", "Garden"]}, "Garden", "Garden"),
    ],
)
async def test_a_question_is_answered(api: Api, form: Any, typed: str, values: str):
    approval = await ask(api, title="Well?", form=form)
    desk = await opened(api, approval)
    assert "If you answer, the run goes on with your answer." in desk.page.words
    assert "Reject Request changes Answer" in desk.page.words
    assert (await desk.press("approved", **{"value.answer": typed})).status_code == 200
    assert (await desk.decide("approved", **{"value.answer": typed})).status_code == 303
    assert await response(api, approval) == {"values": values}
    shown = (await opened(api, approval)).page.words
    assert f"The answer {' '.join(values.split())}" in shown
    assert "Answered by operator" in shown


@pytest.mark.parametrize(
    ("form", "typed"),
    [
        ({"kind": "text"}, {"value.answer": "  "}),
        ({"kind": "text"}, {}),
        ({"kind": "yes_no"}, {"value.answer": "maybe"}),
        ({"kind": "yes_no"}, {}),
        ({"kind": "multiple_choice", "options": ["Lake", "Garden"]}, {"value.answer": "Sea"}),
        ({"kind": "text"}, {"value.answer": "x", "value.other": "y"}),
        ({"kind": "text"}, {"value.answer": "x" * 16_385}),
    ],
)
async def test_what_is_no_answer_is_refused_beside_its_field(api: Api, form: Any, typed: dict[str, str]):
    approval = await ask(api, form=form)
    desk = await opened(api, approval)
    for press in (desk.press, desk.decide):
        refused = await press("approved", feedback="Kept.", **typed)
        page = Page(refused.text)
        assert refused.status_code == 422
        assert page.faults == []
        assert page.areas["feedback"] == "Kept."
        assert "see the fields that are marked" in page.words
        assert [tag for tag in page.tags if tag.attributes.get("class") == "fault"]
    assert await status_of(api, approval) == "pending"


async def test_a_question_can_be_rejected_without_an_answer(api: Api):
    approval = await ask(api, form={"kind": "text"})
    assert (await (await opened(api, approval)).decide("rejected")).status_code == 303
    assert await status_of(api, approval) == "rejected"


async def test_what_stands_in_the_fields_is_what_is_approved(api: Api):
    form = {"kind": "form", "editable": True, "schema": SCHEMA}
    approval = await ask(api, payload=PAYLOAD, form=form)
    desk = await opened(api, approval)
    labels = desk.page.words
    for said in ("Recipient", "Who gets it", "Amount", "count optional", "Change it, if you want", "Approve"):
        assert said in labels
    typed = {"value.to": "Bob", "value.amount": "7.50", "value.channel": "phone", "value.urgent": "yes"}
    typed |= {"value.count": "", "value.tags": "b", "value.more": '{"x": [1]}'}
    assert (await desk.decide("approved", **typed)).status_code == 303
    kept = await response(api, approval)
    assert kept["original"] == PAYLOAD
    wanted = {"to": "Bob", "amount": 7.5, "channel": "phone", "urgent": True, "tags": ["b"], "more": {"x": [1]}}
    assert kept["values"] == wanted
    words = (await opened(api, approval)).page.words
    for said in (
        "What the reviewer changed",
        "As asked Ann",
        "As approved Bob",
        "As asked 12",
        "As approved, new true",
    ):
        assert said in words


async def test_what_was_left_alone_is_what_was_asked(api: Api):
    approval = await ask(api, payload=PAYLOAD, form={"kind": "form", "editable": True, "schema": SCHEMA})
    desk = await opened(api, approval)
    more = {"value.channel": "mail", "value.tags": "a", "value.urgent": "", "value.more": desk.page.areas["value.more"]}
    fields = {name: value for name, value in desk.page.fields().items() if name.startswith("value.")}
    content = [*(desk.page.fields() | fields | more).items(), ("value.tags", "c")]
    content += [("verdict", "approved"), ("confirmed", "approved")]
    from httpx import QueryParams

    sent = [(name, value) for name, value in content if name != "confirmed"] + [("confirmed", "approved")]
    reply = await desk.person.post(f"/inbox/{approval}/decision", str(QueryParams(sent)).encode())
    assert reply.status_code == 303, Page(reply.text).words
    kept = await response(api, approval)
    assert kept["values"] == kept["original"] == PAYLOAD
    assert "What the reviewer changed" not in (await opened(api, approval)).page.words


async def test_each_fault_stands_beside_its_field_and_the_text_in_it(api: Api):
    approval = await ask(api, payload=PAYLOAD, form={"kind": "form", "editable": True, "schema": SCHEMA})
    desk = await opened(api, approval)
    typed = {"value.to": "B", "value.amount": "many", "value.count": "1.5", "value.more": "{", "value.channel": "owl"}
    refused = await desk.decide("approved", **typed)
    page = Page(refused.text)
    assert refused.status_code == 422
    held = {
        tag.attributes["name"]: tag.attributes for tag in page.named("input") if tag.attributes.get("name") in typed
    }
    for name in ("value.to", "value.amount", "value.count"):
        assert held[name]["value"] == typed[name]
    for name in ("value.amount", "value.count"):
        assert held[name]["aria-invalid"] == "true"
        assert held[name]["aria-describedby"] in {tag.attributes["id"] for tag in page.has("id")}
    assert page.areas["value.more"] == "{"
    assert "It must be a number, such as 1.5." in page.words
    assert await status_of(api, approval) == "pending"


async def test_hostile_labels_and_options_are_text(api: Api):
    schema = {
        "type": "object",
        "properties": {
            HOSTILE: {"type": "string", "title": HOSTILE, "description": HOSTILE},
            "choice": {"oneOf": [{"const": HOSTILE, "title": HOSTILE}, {"const": "b", "title": "B"}], "title": HOSTILE},
            "many": {"enum": [f"{HOSTILE}{number}" for number in range(12)]},
        },
    }
    approval = await ask(api, form={"kind": "form", "schema": schema})
    desk = await opened(api, approval)
    assert desk.page.faults == []
    assert not {"img", "style"} & {tag.name for tag in desk.page.tags}
    assert "U+202E" in desk.page.words
    refused = await desk.decide("approved", **{f"value.{HOSTILE}": HOSTILE, "value.choice": "owl", "value.many": ""})
    page = Page(refused.text)
    assert (refused.status_code, page.faults) == (422, [])
    assert (await desk.decide("approved", **{f"value.{HOSTILE}": HOSTILE, "value.choice": HOSTILE})).status_code == 303
    assert (await response(api, approval))["values"] == {HOSTILE: HOSTILE, "choice": HOSTILE}


async def test_values_that_nobody_asked_for_do_not_count(api: Api):
    approval = await ask(api, payload={"a": 1})
    assert (await (await opened(api, approval)).decide("approved", **{"value.a": "2"})).status_code == 303
    assert (await api.get(f"/approvals/{approval}")).json()["response"]["data"] is None
