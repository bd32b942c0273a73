"""A question with a form: asked, shown and answered by a person, by a webhook, or by one that came before it."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from controlplane.domain.events import FactType
from tests.app import OTHER_SECRET, Api, problem

TEXT = {"kind": "text"}
YES_NO = {"kind": "yes_no", "yes_label": "Ship it", "no_label": "Hold"}
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string", "minLength": 1}, "amount": {"type": "number", "maximum": 100}},
    "required": ["to"],
}
FORM = {"kind": "form", "schema": SCHEMA}
EDITABLE = FORM | {"editable": True}
PAYLOAD = {"to": "ann", "amount": 1.5}


def answer(**fields: Any) -> dict[str, Any]:
    return {"requestId": "q-1", "decision": "approved", **fields}


def envelope(**response: Any) -> dict[str, Any]:
    data = {"requestId": "q-1", "response": {"action": "approve", **response}}
    return {"id": "evt_1", "type": "request.completed", "data": data}


def faults(reply: httpx.Response) -> list[str]:
    assert problem(reply) == (422, "invalid_answer")
    return [each["field"] for each in reply.json()["errors"]]


async def stands(api: Api, approval: str) -> tuple[str, Any]:
    shown = (await api.get(f"/approvals/{approval}")).json()
    return shown["status"], None if shown["response"] is None else shown["response"]["data"]


async def test_a_form_is_shown_wherever_the_approval_is(api: Api):
    await api.start()
    asked = await api.ask(form=FORM)
    assert asked["form"] == FORM
    assert list(asked["form"]["schema"]["properties"]) == ["to", "amount"]
    shown = (await api.get(f"/approvals/{asked['approval_id']}")).json()
    listed = (await api.get("/approvals")).json()["approvals"]
    assert (shown["form"], listed[0]["form"]) == (FORM, FORM)
    await api.asked(execution_id="run-2")
    assert [each["form"] for each in (await api.get("/approvals")).json()["approvals"]] == [None, FORM]


async def test_a_form_is_part_of_what_is_asked(api: Api):
    await api.start()
    first = await api.ask(form=FORM)
    again = {"kind": "form", "schema": dict(reversed(SCHEMA.items()))}
    assert (await api.ask(form=again))["approval_id"] == first["approval_id"]
    for other in (None, TEXT, EDITABLE | {"editable": False}):
        reply = await api.post("/executions/run-1/request-approval", {"approval_request_id": "q-1", "form": other})
        assert problem(reply) == (409, "approval_request_conflict")


async def test_an_approval_needs_values_that_fit(api: Api):
    approval = await api.asked(form=FORM)
    assert faults(await api.decide(approval)) == ["values"]
    assert faults(await api.decide(approval, values={"amount": 101})) == ["to", "amount"]
    assert faults(await api.decide(approval, values="ann")) == ["values"]
    assert problem(await api.decide(approval, values={"to": "x"}, response=1)) == (422, "invalid_field")
    assert faults(await api.decide(approval, "rejected", values={"to": "x"})) == ["values"]
    assert await stands(api, approval) == ("pending", None)
    reply = await api.post("/executions/run-1/approval-response", {"decision": "approved", "values": {"to": "bob"}})
    assert reply.json()["status"] == "processed"
    assert await stands(api, approval) == ("approved", {"values": {"to": "bob"}})
    assert (await api.decide(approval)).json()["status"] == "already_processed"
    status = (await api.get("/executions/run-1/approval-status")).json()
    assert status["response"]["data"]["values"] == {"to": "bob"}


@pytest.mark.parametrize("decision", ["rejected", "request_changes"])
async def test_a_no_needs_no_values(api: Api, decision: str):
    approval = await api.asked(form=FORM)
    assert (await api.decide(approval, decision, response={"own": 1})).status_code == 200
    assert await stands(api, approval) == (decision, {"own": 1})


async def test_values_that_nobody_asked_for_are_refused(api: Api):
    approval = await api.asked()
    assert faults(await api.decide(approval, values={"to": "x"})) == ["values"]
    assert await stands(api, approval) == ("pending", None)


async def test_a_payload_is_approved_as_it_was_or_as_it_was_changed(api: Api):
    same = await api.asked(form=EDITABLE, payload=PAYLOAD)
    digest = (await api.get(f"/approvals/{same}")).json()["payload_digest"]
    assert (await api.decide(same, payload_digest=digest)).status_code == 200
    assert await stands(api, same) == ("approved", {"values": PAYLOAD, "original": PAYLOAD})
    changed = await api.asked("q-2", "run-2", form=EDITABLE, payload=PAYLOAD)
    assert faults(await api.decide(changed, values={"to": ""})) == ["to"]
    assert (await api.decide(changed, values={"to": "bob"})).status_code == 200
    assert await stands(api, changed) == ("approved", {"values": {"to": "bob"}, "original": PAYLOAD})
    after = (await api.get(f"/approvals/{changed}")).json()
    assert (after["payload"], after["payload_digest"]) == (PAYLOAD, digest)


@pytest.mark.parametrize("payload", [None, {"amount": 1}, [1], "x"])
async def test_a_payload_that_does_not_fit_cannot_be_edited(api: Api, payload: Any):
    await api.start()
    body = {"approval_request_id": "q-1", "form": EDITABLE, "payload": payload}
    reply = await api.post("/executions/run-1/request-approval", body)
    assert problem(reply) == (422, "invalid_field")
    assert reply.json()["errors"][0]["field"] == "payload"


async def test_a_webhook_answers_in_either_shape(api: Api):
    for number, body in enumerate(
        [
            answer(values="yes"),
            answer(response={"values": "SHIP IT"}),
            answer(values=True, response={"values": True}),
            envelope(values=True),
        ]
    ):
        approval = await api.asked(f"q-{number}", f"run-{number}", form=YES_NO)
        text = json.dumps(body).replace("q-1", f"q-{number}")
        assert (await api.webhook(text.encode())).json()["status"] == "processed"
        assert await stands(api, approval) == ("approved", {"values": "yes"})


async def test_a_webhook_whose_values_do_not_fit_decides_nothing_and_may_be_corrected(api: Api, sql: Any):
    approval = await api.asked(form=YES_NO)
    unfit = [answer(), answer(values="perhaps"), answer(response="yes"), answer(response={"value": "yes"}), envelope()]
    unfit += [answer(decision="rejected", values=True)]
    for body in unfit:
        for _ in range(2):
            assert faults(await api.webhook(body)) == ["values"]
    assert await stands(api, approval) == ("pending", None)
    assert await sql.fetchval("SELECT count(*) FROM seen_webhooks") == 0
    two = answer(values=True, response={"values": False})
    assert problem(await api.webhook(two)) == (400, "invalid_body")
    assert (await api.webhook(answer(values=False))).json()["status"] == "processed"
    assert (await api.webhook(answer(values=False))).json()["replayed"] is True
    assert (await api.webhook(unfit[0])).json()["status"] == "already_processed"
    assert await stands(api, approval) == ("approved", {"values": "no"})


async def test_a_webhook_s_value_is_its_own_where_there_is_no_form(api: Api):
    approval = await api.asked()
    await api.webhook(answer(response={"values": 1, "more": 2}))
    assert await stands(api, approval) == ("approved", {"values": 1, "more": 2})


async def test_an_editable_payload_is_approved_by_a_webhook_without_values(api: Api):
    approval = await api.asked(form=EDITABLE, payload=PAYLOAD)
    assert (await api.webhook(envelope())).json()["status"] == "processed"
    assert await stands(api, approval) == ("approved", {"values": PAYLOAD, "original": PAYLOAD})


async def test_an_early_answer_is_used_when_it_fits(api: Api):
    assert (await api.webhook(answer(values="hold"))).json()["status"] == "parked"
    approval = await api.asked(form=YES_NO)
    assert await stands(api, approval) == ("approved", {"values": "no"})


async def test_an_early_answer_that_does_not_fit_is_dropped_and_the_next_one_used(api: Api, sql: Any):
    early = answer(values="perhaps")
    assert (await api.webhook(early)).json()["status"] == "parked"
    approval = await api.asked(form=YES_NO)
    assert await stands(api, approval) == ("pending", None)
    dropped = await sql.fetchval("SELECT data ->> 'reason' FROM history WHERE type = $1", FactType.WEBHOOK_DROPPED)
    assert dropped == "invalid_answer"
    assert await sql.fetchval("SELECT count(*) FROM parked") == 0
    assert faults(await api.webhook(early)) == ["values"]
    assert (await api.webhook(early | {"requestId": "q-2"})).status_code == 202
    other = answer(values=True) | {"requestId": "q-2"}
    assert (await api.webhook(other, secret=OTHER_SECRET)).status_code == 202
    second = await api.asked("q-2", "run-2", form=YES_NO)
    assert await stands(api, second) == ("approved", {"values": "yes"})


async def test_no_reference_is_ever_fetched(api: Api):
    """A server that would be called, had anybody looked up what a schema refers to."""
    calls: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(await reader.readline())
        writer.close()

    server = await asyncio.start_server(note, "127.0.0.1", 0)
    async with server:
        there = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a.json"
        await api.start()
        for schema in (
            {"properties": {"a": {"$ref": there}}},
            {"$ref": there},
            {"$schema": there},
            {"$id": there, "properties": {"a": {"$ref": "b.json"}}},
            {"$defs": {"A": {"$ref": there}}},
            {"$defs": {"A": {"$id": there}}, "properties": {"a": {"$ref": there}}},
            {"properties": {"a": {"$dynamicRef": there}}},
            {"items": {"not": {"$ref": there + "#/a"}}},
        ):
            body = {"approval_request_id": "q-1", "form": {"kind": "form", "schema": {"type": "object"} | schema}}
            reply = await api.post("/executions/run-1/request-approval", body)
            assert problem(reply) == (422, "invalid_field")
            assert reply.json()["errors"][0]["field"] == "form"
        harmless = {"type": "object", "properties": {"a": {"type": "string", "examples": [{"$ref": there}]}}}
        approval = (await api.ask(form={"kind": "form", "schema": harmless}))["approval_id"]
        assert (await api.decide(approval, values={"a": there})).status_code == 200
    assert calls == []
