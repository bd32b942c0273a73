import asyncio
from typing import Any

import pytest

from tests.mcp.clients import found, over_http, refusal
from tests.mcp.conftest import Plane

TRIP = {"type": "object", "properties": {"nights": {"type": "integer"}}, "required": ["nights"]}


@pytest.mark.parametrize(
    ("arguments", "given", "values"),
    [
        ({"question": "Where to?"}, "Lisbon", "Lisbon"),
        ({"question": "Again?", "kind": "yes_no"}, "No", "no"),
        ({"question": "How?", "options": ["by train", "by plane"]}, "By Train", "by train"),
        ({"question": "What?", "schema": TRIP}, {"nights": 3}, {"nights": 3}),
    ],
)
async def test_an_answer_within_the_wait_is_returned(
    plane: Plane, tools: str, arguments: dict[str, Any], given: object, values: object
):
    async with over_http(tools) as client:
        asking = asyncio.create_task(client.call_tool("ask", {**arguments, "approval_request_id": "it"}))
        plane.decide(await plane.approval_titled(arguments["question"]), "approved", values=given)
        answer = found(await asking)
    assert (answer["status"], answer["answered"], answer["values"]) == ("approved", True, values)
    # An answer is no approval: it may well be a no.
    assert answer["approved"] is False


async def test_an_answer_after_the_wait_is_gone_on_with_by_another_session(plane: Plane, tools: str):
    long = "How shall it be done? " * 20
    async with over_http(tools) as client:
        asked = found(await client.call_tool("ask", {"question": long, "wait_seconds": 0}))
        assert (asked["status"], asked["answered"], asked["values"]) == ("pending", False, None)
    shown = plane.seen("approvals", asked["approval_id"])
    assert (shown["title"][-1], shown["description"]) == ("\u2026", long)
    plane.decide(asked["approval_id"], "approved", values="Slowly.")
    async with over_http(tools) as client:
        answer = found(await client.call_tool("wait_for_approval", {"approval_id": asked["approval_id"]}))
    assert (answer["answered"], answer["values"]) == (True, "Slowly.")


async def test_who_turns_a_question_down_answers_nothing(plane: Plane, tools: str):
    async with over_http(tools) as client:
        asked = found(await client.call_tool("ask", {"question": "Where to?", "wait_seconds": 0}))
        plane.decide(asked["approval_id"], "rejected", feedback="Ask Bo.")
        answer = found(await client.call_tool("wait_for_approval", {"approval_id": asked["approval_id"]}))
    assert (answer["status"], answer["answered"], answer["values"], answer["feedback"]) == (
        "rejected",
        False,
        None,
        "Ask Bo.",
    )


async def test_a_payload_is_approved_with_changes_where_that_was_offered(plane: Plane, tools: str):
    asked = {"title": "Book?", "payload": {"nights": 3}, "editable_schema": TRIP}
    async with over_http(tools) as client:
        first = found(await client.call_tool("request_approval", asked))
        plane.decide(first["approval_id"], "approved", values={"nights": 2})
        changed = found(await client.call_tool("wait_for_approval", {"approval_id": first["approval_id"]}))
        second = found(await client.call_tool("request_approval", asked))
        plane.decide(second["approval_id"], "approved")
        as_asked = found(await client.call_tool("wait_for_approval", {"approval_id": second["approval_id"]}))
    assert (changed["approved"], changed["answered"], changed["values"]) == (True, False, {"nights": 2})
    assert "with changes" in changed["next_step"]
    assert (as_asked["approved"], as_asked["values"]) == (True, {"nights": 3})
    assert "exactly" in as_asked["next_step"]


BAD: list[tuple[dict[str, object], str]] = [
    ({}, "question"),
    ({"question": "?", "options": ["a", "a"]}, "options"),
    ({"question": "?", "kind": "secret"}, "kind"),
    ({"question": "?", "kind": "form"}, "schema"),
    ({"question": "?", "schema": {"type": "nothing"}}, "schema"),
    ({"question": "?", "wait_seconds": 601}, "0 to 600"),
]


async def test_bad_input_is_an_error_that_names_what_is_wrong(tools: str):
    async with over_http(tools) as client:
        for arguments, said in BAD:
            assert said in refusal(await client.call_tool("ask", arguments)), arguments
