import asyncio
import json
import re
import sys
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import msgspec
import pytest
from holdshort import (
    Agent,
    ApprovalResult,
    AsyncClient,
    Form,
    InvalidAnswer,
    InvalidField,
    MissingExtra,
    Question,
    RequestConflict,
    ValuesInvalid,
    Verdict,
)
from holdshort._forms import held_against
from holdshort.testing import ControlPlane

SCHEMA = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 1}, "to": {"enum": ["Ann", "Ben"]}},
    "required": ["amount"],
    "additionalProperties": False,
}


class Transfer(msgspec.Struct):
    amount: int
    to: str = "Ann"


@dataclass
class Address:
    street: str
    number: int


@pytest.mark.parametrize(
    ("asked", "values", "answer"),
    [
        ({}, " because\n", " because\n"),
        ({"kind": "yes_no", "yes_label": "Send"}, "send", "yes"),
        ({"kind": "yes_no"}, "no", "no"),
        ({"options": ["Red", "Blue"]}, "blue", "Blue"),
        ({"schema": SCHEMA}, {"amount": 3, "to": "Ben"}, {"amount": 3, "to": "Ben"}),
        ({"schema": Transfer}, {"amount": 3}, Transfer(3)),
        ({"schema": Address}, {"street": "High", "number": 1}, Address("High", 1)),
    ],
)
async def test_an_answer_is_an_approval_with_values(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], values: Any, answer: Any
) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask("Which?", approval_request_id="q", **asked))
        question = await plane.asked("q")
        assert question.title == "Which?"
        assert question.form is not None
        plane.decide(question, "approved", values=values)
        result = await waiting
    assert result.approved
    assert result.values == answer
    assert type(result.values) is type(answer)
    assert result.data == {"values": values if isinstance(values, dict) else answer}


@pytest.mark.parametrize("ending", ["rejected", "request_changes", "withdrawn", "expired"])
async def test_what_is_no_approval_has_no_values(plane: ControlPlane, agent: Agent, ending: str) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask("Which?", on_expiry="resume", approval_request_id="q"))
        question = await plane.asked("q")
        if ending == "withdrawn":
            plane.withdraw(question)
        elif ending == "expired":
            plane.advance(hours=72)
        else:
            with pytest.raises(ValueError, match="values"):
                plane.decide(question, ending, values="Red")
            plane.decide(question, ending, data={"values": "Red"})
        result = await waiting
    assert (result.decision, result.values, result.original) == (ending, None, None)


@pytest.mark.parametrize(
    ("asked", "unclear"),
    [
        ({}, ["", " ", None, 1, ["x"]]),
        ({"kind": "yes_no"}, ["ok", "", 1, None]),
        ({"options": ["Red", "Blue"]}, ["Green", 0, None]),
        ({"schema": SCHEMA}, [{}, {"amount": 0}, {"amount": "3"}, {"amount": 1, "x": 1}, {"amount": True}, [], None]),
        ({"schema": Transfer}, [{"to": "Ann"}, {"amount": 1.5}, "3", None]),
    ],
)
async def test_what_does_not_fit_is_refused_to_the_person_and_stays_open(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], unclear: list[Any]
) -> None:
    async with agent.execution("run-1"), AsyncClient(transport=plane.transport) as client:
        waiting = asyncio.create_task(agent.ask("Which?", **asked))
        question = await plane.asked()
        for values in unclear:
            with pytest.raises(InvalidAnswer):
                await client.decide(question.approval_id, Verdict(decision="approved", values=values))
            with pytest.raises(ValueError, match=r"\S"):
                plane.decide(question, "approved", values=values)
        assert len(plane.pending()) == 1
        waiting.cancel()


@pytest.mark.parametrize("schema", [SCHEMA, Transfer])
@pytest.mark.parametrize("data", [None, {}, {"values": None}, {"values": {"amount": "much"}}, [], "yes"])
async def test_what_came_another_way_and_does_not_fit_never_reaches_the_code(
    plane: ControlPlane, agent: Agent, schema: Any, data: Any
) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask("Which?", schema=schema, approval_request_id="q"))
        question = await plane.asked("q")
        plane._book.settle(plane._book.approvals[question.approval_id], "approved", "", data)
        plane._tell()
        with pytest.raises(ValuesInvalid) as refused:
            await waiting
        assert refused.value.details == {"approval_id": question.approval_id, "decision": "approved", "data": data}
        with pytest.raises(ValuesInvalid):
            await agent.ask("Which?", schema=schema, approval_request_id="q")
    assert len(plane.approvals()) == 1


@pytest.mark.parametrize("schema", [SCHEMA, Transfer])
async def test_a_payload_is_approved_with_changes(plane: ControlPlane, agent: Agent, schema: Any) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(
            agent.pause("q", title="Send it?", payload={"amount": 100, "to": "Ann"}, editable=True, schema=schema)
        )
        question = await plane.asked("q")
        assert question.form is not None
        assert question.form.editable
        with pytest.raises(ValueError, match="amount"):
            plane.decide(question, "approved", values={"amount": "less"})
        plane.decide(question, "approved", values={"amount": 50, "to": "Ben"})
        result = await waiting
    if schema is Transfer:
        assert (result.values, result.original) == (Transfer(50, "Ben"), Transfer(100, "Ann"))
    assert result.data == {"values": {"amount": 50, "to": "Ben"}, "original": {"amount": 100, "to": "Ann"}}


async def test_a_run_that_is_started_again_finds_its_answer_and_keeps_its_form(
    plane: ControlPlane, agent: Agent
) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask("Which?", options=["Red", "Blue"]))
        plane.decide(await plane.asked(), "approved", values="Red")
        made = (await waiting).approval_request_id

    async def again(*options: str) -> ApprovalResult:
        run = plane.connect(Agent("contract-reviewer", "1.0.0"))
        plane._book.executions["run-1"].status = "running"
        async with run.execution("run-1"):
            return await run.ask("Which?", options=options, approval_request_id=made)

    assert (await again("Red", "Blue")).values == "Red"
    with pytest.raises(RequestConflict):
        await again("Red", "Green")
    assert len(plane.approvals()) == 1


async def test_who_waits_for_a_question_asked_before_holds_its_values_too(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask("How much?", schema=Transfer, approval_request_id="q"))
        plane.decide(await plane.asked("q"), "approved", values={"amount": 3})
        await waiting
        assert (await agent.wait_for_resume("q", schema=Transfer)).values == Transfer(3)
        assert (await agent.wait_for_resume("q", schema=SCHEMA)).values == {"amount": 3}
        assert (await agent.wait_for_resume("q")).values == {"amount": 3}
        with pytest.raises(ValuesInvalid):
            await agent.wait_for_resume("q", schema=Address)


async def test_made_ids_name_the_function_that_asks(plane: ControlPlane, agent: Agent) -> None:
    @agent.reasoner()
    async def colours() -> list[Any]:
        return [(await agent.ask("Which?")).values, (await agent.pause()).approved]

    @agent.reasoner()
    def names() -> Any:
        return agent.ask_sync("Whose?", options=["Ann", "Ben"]).values

    call = asyncio.create_task(plane.call(agent, "colours"))
    plane.decide(await plane.asked(), "approved", values="Red")
    plane.decide(await plane.asked(), "approved")
    assert await call == ["Red", True]
    call = asyncio.create_task(plane.call(agent, "names"))
    plane.decide(await plane.asked(), "approved", values="Ben")
    assert await call == "Ben"
    made = [each.approval_request_id.rpartition("<locals>.")[2] for each in plane.approvals()]
    assert made == ["colours:1", "colours:2", "names:1"]


@pytest.mark.parametrize(
    ("question", "title", "description"),
    [
        (" Which? ", "Which?", "more"),
        ("x" * 200, "x" * 200, "more"),
        ("x" * 201, "x" * 199 + "\u2026", "x" * 201 + "\n\nmore"),
        ("One\ntwo", "One", "One\ntwo\n\nmore"),
    ],
)
async def test_a_long_question_is_shown_whole(
    plane: ControlPlane, agent: Agent, question: str, title: str, description: str
) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask(question, description="more"))
        shown = await plane.asked()
        waiting.cancel()
    assert (shown.title, shown.description) == (title, description)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"kind": "secret"}, "kind"),
        ({"kind": "perhaps"}, "kind"),
        ({"kind": "form"}, "schema"),
        ({"kind": "text", "schema": SCHEMA}, "schema"),
        ({"options": ["a"], "schema": SCHEMA}, "schema"),
        ({"schema": {"type": "object", "properties": 1}}, "schema"),
        ({"schema": {"type": "string"}}, "schema"),
        ({"options": ["a", "a"]}, "options"),
        ({"kind": "yes_no", "no_label": "Yes"}, "yes_label"),
        ({"yes_label": "Go"}, "yes_label"),
        ({"schema": SCHEMA, "yes_label": "Go"}, "yes_label"),
    ],
)
async def test_what_nobody_could_answer_is_refused_before_it_is_asked(
    plane: ControlPlane, agent: Agent, asked: dict[str, Any], field: str
) -> None:
    async with agent.execution("run-1"):
        with pytest.raises(InvalidField) as refused:
            await agent.ask("Which?", **asked)
    assert [each["field"] for each in refused.value.details["errors"]] == [field]
    assert plane.approvals() == []


async def test_what_may_be_edited_needs_a_schema_and_a_payload(plane: ControlPlane, agent: Agent) -> None:
    wrong: list[dict[str, Any]] = [
        {"editable": True},
        {"editable": True, "payload": {"a": 1}},
        {"editable": True, "schema": SCHEMA},
        {"form": Form(kind="text"), "schema": SCHEMA},
        {"form": Form(kind="text"), "editable": True},
    ]
    async with agent.execution("run-1"):
        for each in wrong:
            with pytest.raises(InvalidField):
                await agent.pause("q", **each)
    assert plane.approvals() == []


async def test_a_form_can_be_given_in_full(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.pause("q", form=Form(kind="form", schema=SCHEMA)))
        plane.decide(await plane.asked("q"), "approved", values={"amount": 2})
        assert (await waiting).values == {"amount": 2}


class Line(msgspec.Struct):
    text: str
    count: Annotated[int, msgspec.Meta(ge=1, title="How many")] = 1


class Order(msgspec.Struct):
    lines: list[Line]
    urgent: bool
    way: Literal["post", "courier"] | None = None
    code: int | str = 0
    main: Line | None = None
    day: date | None = None


class Itself(msgspec.Struct):
    inner: "Itself | None" = None


async def test_a_types_schema_is_of_one_piece_and_its_values_become_the_type(plane: ControlPlane, agent: Agent) -> None:
    async with agent.execution("run-1"):
        waiting = asyncio.create_task(agent.ask("What?", schema=Order))
        question = await plane.asked()
        assert question.form is not None
        assert question.form.schema is not None
        sent = json.dumps(question.form.schema)
        assert not {"$ref", "$defs"} & set(re.findall(r'"([^"]+)":', sent))
        properties = question.form.schema["properties"]
        line = properties["lines"]["items"]
        assert (properties["main"]["type"], line["type"]) == (["object", "null"], "object")
        assert line["properties"]["count"] == {"type": "integer", "minimum": 1, "title": "How many", "default": 1}
        assert properties["way"]["enum"] == ["courier", "post", None]
        values = {"lines": [{"text": "a"}], "urgent": True, "way": "post", "day": "2030-01-02"}
        plane.decide(question, "approved", values=values)
        assert (await waiting).values == Order([Line("a")], urgent=True, way="post", day=date(2030, 1, 2))


@pytest.mark.parametrize("kind", [list[int], Itself])
async def test_a_type_that_no_form_can_be_made_of_is_refused(plane: ControlPlane, agent: Agent, kind: Any) -> None:
    async with agent.execution("run-1"):
        with pytest.raises(TypeError):
            await agent.ask("Which?", schema=kind)
    assert plane.approvals() == []


async def test_without_the_extra_a_schema_is_refused_before_it_is_asked(
    plane: ControlPlane, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    async with agent.execution("run-1"):
        with pytest.raises(MissingExtra, match=r"holdshort\[forms\]"):
            await agent.ask("Which?", schema=SCHEMA)
    assert plane.approvals() == []


async def test_a_schema_fetches_nothing(plane: ControlPlane, agent: Agent) -> None:
    elsewhere = {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/schema"}}}
    async with agent.execution("run-1"):
        with pytest.raises(InvalidField, match="nothing is fetched"):
            await agent.ask("Which?", schema=elsewhere)
    with pytest.raises(ValueError, match="elsewhere"):
        held_against(elsewhere, {"a": 1})


async def test_a_clients_question_carries_its_form(plane: ControlPlane) -> None:
    form = Form(kind="multiple_choice", options=["Red", "Blue"])
    async with AsyncClient(transport=plane.transport) as client:
        await client.create_execution("n", "run-1")
        asked = await client.request_approval("run-1", Question(approval_request_id="q", form=form))
        assert (await client.get_approval(asked.approval_id)).form == form
        await client.answer_execution("run-1", Verdict(decision="approved", values="red"))
        stands = await client.get_approval_status("run-1")
    assert stands.response is not None
    assert stands.response.data == {"values": "Red"}
