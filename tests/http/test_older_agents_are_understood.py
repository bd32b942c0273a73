"""What agents of older SDKs send means what they meant by it; `tests/acceptance` has such agents do it."""

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from controlplane.http.peer import ALIASES
from tests.app import Api, problem, served
from tests.postgres import Database

EVENTS = "/workflow/executions/events"
SHUTDOWN = {"status": "cancelled", "error_details": {"reason": "shutdown"}}


async def run_of(api: Api, execution_id: str = "run-1") -> dict[str, Any]:
    reply = await api.get(f"/executions/{execution_id}")
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def report(api: Api, body: dict[str, Any], execution_id: str = "run-1") -> dict[str, Any]:
    reply = await api.post(f"/executions/{execution_id}/status", body)
    assert reply.status_code == 200, reply.text
    return dict(reply.json())


async def raw_post(api: Api, path: str, raw: str, **headers: str) -> httpx.Response:
    return await api.client.post(
        f"/api/v1{path}", content=raw.encode(), headers={"Content-Type": "application/json", **headers}
    )


@pytest.mark.parametrize("spelling", [str.lower, str.upper, str.title, lambda word: f" {word}\n"])
async def test_every_word_for_a_status_is_known_in_any_case(api: Api, spelling: Callable[[str], str]):
    for number, (word, status) in enumerate(ALIASES.items()):
        await api.start(f"run-{number}")
        after = await report(api, {"status": spelling(word)}, f"run-{number}")
        assert after["status"] == (status if status in {"succeeded", "failed", "cancelled", "timeout"} else "running")


async def test_an_unknown_word_is_refused_with_those_that_are_known(api: Api):
    await api.start()
    refused = await api.post("/executions/run-1/status", {"status": "finished"})
    assert problem(refused) == (422, "invalid_field")
    for word in ("succeeded", "timed_out", "awaiting_approval", "in_progress"):
        assert word in refused.json()["errors"][0]["rule"]
    assert (await run_of(api))["status"] == "running"


async def test_an_error_is_kept_as_text_whatever_its_shape(api: Api):
    shapes: list[tuple[dict[str, Any], str | None]] = [
        ({"error": "out of paper"}, "out of paper"),
        ({"error": {"code": 7, "inner": ["é"]}}, '{"code":7,"inner":["é"]}'),
        ({"error": None, "error_details": {"line": 3}}, '{"line":3}'),
        ({"error": "said", "error_details": {"line": 3}}, "said"),
        ({"error": "", "error_details": [1]}, ""),
        ({}, None),
    ]
    for number, (body, kept) in enumerate(shapes):
        await api.start(f"run-{number}")
        assert (await report(api, {"status": "failed", **body}, f"run-{number}"))["error"] == kept


async def test_an_error_that_is_too_long_is_cut_and_the_run_ends(api: Api):
    await api.start()
    ended = await report(api, {"status": "failed", "error": "x" * 100_000})
    assert (ended["status"], ended["error"]) == ("failed", "x" * 64 * 1024)


async def test_a_failed_run_keeps_the_reason_that_its_agent_gave(api: Api):
    given = [
        ({"reason": "step_mismatch"}, "step_mismatch"),
        ({"error_details": {"reason": "reasoner_timeout"}}, "reasoner_timeout"),
        ({"reason": "step_mismatch", "error_details": {"reason": "other"}}, "step_mismatch"),
        ({"error_details": {"reason": "Not a code"}}, "execution_finished"),
        ({"error_details": {"reason": 1}}, "execution_finished"),
        ({"error_details": "reason"}, "execution_finished"),
    ]
    for number, (body, reason) in enumerate(given):
        await api.start(f"run-{number}")
        assert (await report(api, {"status": "error", **body}, f"run-{number}"))["status_reason"] == reason
    await api.start("well")
    assert (await report(api, {"status": "ok", "reason": "step_mismatch"}, "well"))["status_reason"] != "step_mismatch"


async def test_a_report_with_everything_an_older_agent_sends_is_taken(api: Api):
    await api.start()
    body = {
        "status": "Completed",
        "result": [1, {"a": None}],
        "duration_ms": 17,
        "completed_at": "2026-01-01T00:00:00.123456+00:00",
        "execution_id": "another",
        "reasoner": "r",
        "usage": {"tokens": 3},
        "error_status_code": 403,
    }
    ended = await report(api, body)
    assert (ended["execution_id"], ended["status"], ended["result"]) == ("run-1", "succeeded", [1, {"a": None}])


@pytest.mark.parametrize(
    "result", ['"\\u0000"', '"\\ud83d"', "NaN", "-Infinity", "1e999", '{"a": 1, "a": 2}', "[" * 80 + "]" * 80]
)
async def test_an_end_whose_result_cannot_be_kept_still_ends_the_run(api: Api, result: str):
    await api.start()
    reply = await raw_post(api, "/executions/run-1/status", f'{{"status": "SUCCEEDED", "result": {result}}}')
    assert problem(reply) == (400, "invalid_body")
    run = await run_of(api)
    assert (run["status"], run["status_reason"], run["result"]) == ("failed", "result_unreadable", None)


@pytest.mark.parametrize(
    "body",
    ['{"status": "running", "result": NaN}', '{"result": NaN}', '{"status": "succeeded", "res', "[" * 9000, "[NaN]"],
)
async def test_a_body_that_ends_nothing_leaves_the_run_alone(api: Api, body: str):
    await api.start()
    assert problem(await raw_post(api, "/executions/run-1/status", body)) == (400, "invalid_body")
    assert (await run_of(api))["status"] == "running"


async def test_a_stop_of_the_program_ends_no_run_that_waits(api: Api):
    approval = await api.asked()
    handed = await report(api, {**SHUTDOWN, "error": "cancelled during graceful shutdown"})
    assert (handed["status"], handed["error"]) == ("waiting", None)
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"
    assert (await api.decide(approval)).json()["status"] == "processed"


async def test_a_stop_of_the_program_ends_a_run_that_works(api: Api):
    await api.start()
    assert (await report(api, SHUTDOWN))["status"] == "cancelled"


async def test_any_other_cancelled_run_is_over(api: Api):
    await api.asked()
    assert (await report(api, {"status": "cancelled", "error_details": {"reason": "cancelled"}}))[
        "status"
    ] == "cancelled"


async def test_an_event_never_undoes_waiting(api: Api):
    await api.asked()
    events = [
        {"execution_id": "run-1", "status": word, "type": "r", "input_data": {}} for word in ("running", "RUNNING")
    ]
    for event in events:
        reply = await api.post(EVENTS, event)
        assert (reply.status_code, reply.json()["success"]) == (200, True)
        run = await run_of(api)
        assert (run["status"], run["pending_approvals"]) == ("waiting", 1)


async def test_an_event_of_a_run_that_nobody_knows_is_taken(api: Api):
    for execution_id in ("nobody", "", "a b", "é" * 300):
        for status in ("running", "succeeded", "registered", ""):
            reply = await api.post(EVENTS, {"execution_id": execution_id, "status": status})
            assert (reply.status_code, reply.json()) == (200, {"success": True, "kept": False})


async def test_what_was_called_inside_of_a_run_is_registered_pauses_and_ends_by_its_event(api: Api):
    await api.start()
    body = {
        "execution_id": "inner-1",
        "run_id": "flow-1",
        "workflow_id": "flow-1",
        "reasoner_name": "inner",
        "node_id": "node-1",
        "parent_execution_id": "run-1",
        "caller_did": None,
    }
    for _ in range(2):
        reply = await api.post("/workflow/executions", body)
        assert (reply.status_code, reply.json()) == (
            200,
            {"execution_id": "inner-1", "run_id": "flow-1", "workflow_id": "flow-1", "status": "running"},
        )
    approval = (await api.ask(execution_id="inner-1"))["approval_id"]
    assert (await api.decide(approval)).status_code == 200
    await api.post(EVENTS, {"execution_id": "inner-1", "status": "succeeded", "result": {"a": 1}, "duration_ms": 3})
    inner = await run_of(api, "inner-1")
    assert (inner["status"], inner["result"], inner["reasoner"]) == ("succeeded", {"a": 1}, "inner")
    assert (await run_of(api))["status"] == "running"


async def test_an_error_in_an_event_may_have_any_shape(api: Api):
    for number, (error, kept) in enumerate([("no", "no"), ({"detail": [1]}, '{"detail":[1]}'), ([1], "[1]"), (7, "7")]):
        await api.start(f"run-{number}")
        reply = await api.post(EVENTS, {"execution_id": f"run-{number}", "status": "failed", "error": error})
        assert reply.status_code == 200
        run = await run_of(api, f"run-{number}")
        assert (run["status"], run["error"]) == ("failed", kept)


async def test_many_runs_are_looked_up_at_once(api: Api):
    for number in range(3):
        await api.start(f"run-{number}")
    await report(api, {"status": "ok", "result": 0}, "run-1")
    ids = ["run-2", "nobody", "run-1", "run-1"]
    answer = (await api.post("/executions/batch-status", {"execution_ids": ids})).json()
    assert {name: each["status"] for name, each in answer.items()} == {
        "run-2": "running",
        "nobody": "not_found",
        "run-1": "succeeded",
    }
    ended = await run_of(api, "run-1")
    assert answer["run-1"] == {name: ended[name] for name in answer["run-1"]}
    assert (answer["run-1"]["result"], answer["nobody"]["execution_id"]) == (0, "nobody")
    assert (await api.post("/executions/batch-status", {"execution_ids": []})).json() == {}
    many = await api.post("/executions/batch-status", {"execution_ids": ["a"] * 501})
    assert problem(many) == (422, "invalid_field")


async def test_a_note_is_kept_with_the_run_of_the_header_and_once(api: Api):
    await api.start()
    body = {"message": "paused — waiting", "tags": ["approval", 7, "a\nb", ""], "timestamp": 1.5, "agent_node_id": "n"}
    for path in ("/executions/note", "/ui/v1/executions/note", "/executions/note"):
        reply = await raw_post(api, path, json.dumps(body), **{"X-Execution-ID": "run-1"})
        assert (reply.status_code, reply.json()["success"]) == (200, True)
    kept = (await run_of(api))["notes"]
    assert [(note["message"], note["tags"]) for note in kept] == [("paused — waiting", ["approval"])]


async def test_notes_without_a_time_are_all_kept(api: Api):
    await api.start()
    for _ in range(2):
        await raw_post(api, "/executions/note", '{"message": "again"}', **{"X-Execution-ID": "run-1"})
    assert [note["message"] for note in (await run_of(api))["notes"]] == ["again", "again"]


async def test_a_note_that_is_too_long_is_cut(api: Api):
    await api.start()
    body = json.dumps({"message": "x" * 30_000, "tags": ["t"] * 99, "timestamp": 1})
    assert (await raw_post(api, "/executions/note", body, **{"X-Execution-ID": "run-1"})).status_code == 200
    (note,) = (await run_of(api))["notes"]
    assert (len(note["message"]), len(note["tags"])) == (20_000, 50)


async def test_a_note_of_no_run_is_refused(api: Api):
    missing = await raw_post(api, "/executions/note", '{"message": "m"}')
    assert problem(missing) == (422, "invalid_field")
    assert missing.json()["errors"][0]["field"] == "X-Execution-ID"
    unknown = await raw_post(api, "/executions/note", '{"message": "m"}', **{"X-Execution-ID": "nobody"})
    assert problem(unknown) == (404, "execution_not_found")


async def test_what_is_best_effort_is_answered_and_changes_nothing(api: Api):
    await api.start()
    before = await run_of(api)
    logs = await raw_post(api, "/executions/run-1/logs", '{"entries": [{"message": NaN}]}')
    assert (logs.status_code, logs.json()) == (200, {"success": True, "kept": False})
    identity = await api.post("/did/register", {"agent_node_id": "n"})
    assert (identity.status_code, identity.json()["success"]) == (200, False)
    waits = await api.post("/agents/node-1/executions/run-1/awaiter-status", {"status": "waiting", "reason": "a child"})
    assert (waits.status_code, waits.json()["applied"], waits.json()["status"]) == (200, False, "running")
    assert await run_of(api) == before


async def test_a_run_is_shown_with_what_older_agents_look_for(api: Api):
    await api.start()
    run = await run_of(api)
    assert (run["completed_at"], run["duration_ms"], run["approval_request_id"]) == (None, None, None)
    await api.ask("q-1", approval_request_url="https://desk.example/1")
    run = await run_of(api)
    assert (run["approval_request_id"], run["approval_status"]) == ("q-1", "pending")
    assert run["approval_request_url"] == "https://desk.example/1"
    await report(api, {"status": "done"})
    run = await run_of(api)
    assert (run["completed_at"], run["approval_status"]) == (run["ended_at"], "withdrawn")
    assert run["duration_ms"] >= 0


async def test_a_websocket_is_refused_as_an_ordinary_request_and_without_a_word_in_the_log(
    database: Database, caplog: pytest.LogCaptureFixture
):
    async with served(database, workers=False) as api:
        caplog.clear()  # of what is said of a start
        reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
        writer.write(
            b"GET /api/v1/memory/events/ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            % api.port
        )
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 404 ")
        writer.close()
        await writer.wait_closed()
        assert (await api.get("/executions")).status_code == 200
        assert [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING] == []
