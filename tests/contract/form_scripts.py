"""Scripts of what people fill in while deciding, as those in `scripts`."""

from typing import Any

from holdshort import Approval, Form, Verdict

from tests.contract.scripts import APPROVED, CHANGES, REJECTED, Does, Ids, ask, script

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "amount": {"type": "integer", "minimum": 1},
        "to": {"enum": ["Ann", "Ben"]},
        "lines": {"type": "array", "items": {"type": "string", "maxLength": 3}},
        "ready": {"type": ["boolean", "null"]},
    },
    "required": ["amount"],
    "additionalProperties": False,
}


def filled(values: Any, **rest: Any) -> Verdict:
    return Verdict(decision="approved", values=values, **rest)


@script
async def values_come_with_an_approval(do: Does, ids: Ids) -> None:
    questions: list[tuple[Form, list[Any]]] = [
        (Form(kind="text"), [None, "", " \n", 1, ["a"], "x" * 16_385, " as it is\n"]),
        (Form(kind="yes_no"), [None, "ok", 1, "", True]),
        (Form(kind="yes_no", yes_label="Send", no_label="Keep"), ["sen", {}, "KEEP"]),
        (Form(kind="multiple_choice", options=["Red", "Blue"]), [None, "Green", 0, "Red Blue", "blue"]),
        (
            Form(kind="form", schema=SCHEMA),
            [None, {}, [], "3", {"amount": 0}, {"amount": "3"}, {"amount": True}, {"amount": 1, "x": 1},
             {"amount": 1, "to": "ann"}, {"amount": 1, "lines": ["long"]}, {"amount": 1.5},
             {"amount": 3, "to": "Ben", "lines": ["a", "\u00e9"], "ready": None}],
        ),
    ]  # fmt: skip
    for number, (form, said) in enumerate(questions):
        run = f"{ids.run}-{number}"
        await do("create_execution", ids.node, run)
        asked = await do("request_approval", run, ask(form=form))
        await do("get_approval", asked.approval_id)
        for values in said:
            await do("decide", asked.approval_id, filled(values))
        await do("get_approval_status", run)
        await do("decide", asked.approval_id, filled(said[-1]))
        await do("get_execution", run)


@script
async def a_payload_is_approved_with_changes(do: Does, ids: Ids) -> None:
    form = Form(kind="form", schema=SCHEMA, editable=True)
    payload = {"to": "Ann", "amount": 100}
    for number, values in enumerate([None, {"amount": 100, "to": "Ann"}, {"amount": 50}]):
        run = f"{ids.run}-{number}"
        await do("create_execution", ids.node, run)
        asked: Approval = await do("request_approval", run, ask(payload=payload, form=form))
        await do("decide", asked.approval_id, filled({"amount": -1}))
        await do("decide", asked.approval_id, filled(values, payload_digest="0" * 64))
        await do("decide", asked.approval_id, filled(values, payload_digest=asked.payload_digest))
        await do("get_approval_status", run)


@script
async def what_is_no_approval_takes_no_values(do: Does, ids: Ids) -> None:
    for number, verdict in enumerate((REJECTED, CHANGES)):
        run = f"{ids.run}-{number}"
        await do("create_execution", ids.node, run)
        asked = await do("request_approval", run, ask(form=Form(kind="text")))
        await do("decide", asked.approval_id, Verdict(decision=verdict.decision, values="x"))
        await do("decide", asked.approval_id, Verdict(decision=verdict.decision, response={"values": "x"}))
        await do("get_approval_status", run)
    await do("create_execution", ids.node, f"{ids.run}-3")
    asked = await do("request_approval", f"{ids.run}-3", ask(form=Form(kind="text")))
    await do("decide", asked.approval_id, filled("x", response={"values": "y"}))
    await do("decide", asked.approval_id, Verdict(decision="approved", response={"values": "y"}))
    await do("create_execution", ids.node, ids.run)
    plain = await do("request_approval", ids.run, ask())
    await do("decide", plain.approval_id, filled("x"))
    await do("decide", plain.approval_id, APPROVED)
    await do("get_approval_status", ids.run)


@script
async def asking_again_with_another_form_is_another_question(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    form = Form(kind="multiple_choice", options=["Red", "Blue"])
    asked = await do("request_approval", ids.run, ask(form=form))
    await do("request_approval", ids.run, ask(form=form))
    await do("request_approval", ids.run, ask(form=Form(kind="multiple_choice", options=["Red", "Green"])))
    await do("request_approval", ids.run, ask())
    await do("answer_execution", ids.run, filled("Red"), approval_request_id="q")
    await do("request_approval", ids.run, ask(form=form))
    await do("get_approval", asked.approval_id)


@script
async def forms_are_checked(do: Does, ids: Ids) -> None:
    await do("create_execution", ids.node, ids.run)
    wrong = [
        Form(kind="secret"),
        Form(kind="perhaps"),
        Form(kind="form"),
        Form(kind="text", schema=SCHEMA),
        Form(kind="text", options=["a"]),
        Form(kind="multiple_choice"),
        Form(kind="multiple_choice", options=["a", "a"]),
        Form(kind="yes_no", yes_label="No"),
        Form(kind="text", yes_label="Go"),
        Form(kind="text", editable=True),
        Form(kind="form", schema={"type": "string"}),
        Form(kind="form", schema={}),
        Form(kind="form", schema={"type": "object", "properties": {"a": {"type": "nothing"}}}),
    ]
    for form in wrong:
        await do("request_approval", ids.run, ask(form=form))
    editable = Form(kind="form", schema=SCHEMA, editable=True)
    for payload in (None, {"amount": 0}, "x"):
        await do("request_approval", ids.run, ask(form=editable, payload=payload))
    await do("get_execution", ids.run)
