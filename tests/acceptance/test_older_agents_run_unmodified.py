"""An agent of the unmodified older SDK is dispatched, pauses, is decided, goes on and reports."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.desk import HEADERS, WAYS, Desk
from tests.acceptance.peers import PROGRAMS, Peer
from tests.durability.plane import API, Plane, until

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("agent")]


async def test_it_is_registered_and_listed(desk: Desk, agent: Peer):
    nodes = (await desk.client.get(f"{API}/nodes")).json()["nodes"]
    (node,) = [each for each in nodes if each["node_id"] == "peer"]
    assert [each["base_url"] for each in node["instances"]] == [agent.base]


async def test_it_pauses_twice_in_one_run(desk: Desk):
    run = await desk.start("peer.twice", request_id="two")
    waiting = await desk.until_waiting(run, "two-a")
    assert waiting["approval_request_url"] == "https://desk.example/a"
    await desk.decide(run, "two-a", feedback="fine so far", response={"amount": 3})
    await desk.until_waiting(run, "two-b")
    await desk.decide(run, "two-b", "approve", shape="envelope")
    over = await desk.until_over(run)
    first, second = over["result"]
    assert (over["status"], first["decision"], second["decision"]) == ("succeeded", "approved", "approved")
    assert (first["feedback"], first["raw_response"]) == ("fine so far", {"amount": 3})
    assert (first["approval_request_id"], second["approval_request_id"]) == ("two-a", "two-b")
    assert {first["execution_id"], second["execution_id"]} == {run}


async def test_a_caller_that_waits_gets_the_result(desk: Desk):
    done = await desk.execute("peer.returning", kind="list")
    assert (done["status"], done["result"], done["error_message"]) == ("succeeded", [1, {"a": []}], None)
    assert done["duration_ms"] >= 0

    waiting = asyncio.create_task(desk.execute("peer.once", request_id="waited-for"))
    asked = await desk.until_asked("waited-for")
    await desk.decide(asked["execution_id"], "waited-for")
    assert (await waiting)["result"]["approved"] is True


async def test_every_header_form_and_shape_of_webhook_decides(desk: Desk):
    ids = ["-".join(way).lower() for way in WAYS]
    runs = await asyncio.gather(*(desk.start("peer.once", request_id=each) for each in ids))
    for way, run, request_id in zip(WAYS, runs, ids, strict=True):
        await desk.until_waiting(run)
        header, form, shape = way
        await desk.decide(run, request_id, header=header, form=form, shape=shape, feedback=request_id)
    for run, request_id in zip(runs, ids, strict=True):
        over = await desk.until_over(run)
        assert (over["status"], over["result"]["feedback"]) == ("succeeded", request_id)


async def test_a_wrong_signature_decides_nothing(desk: Desk):
    run = await desk.start("peer.once", request_id="guarded")
    await desk.until_waiting(run)
    body = b'{"requestId": "guarded", "decision": "approved"}'
    for header in HEADERS:
        assert (await desk.post_signed(body, {header: "sha256=" + "0" * 64})).status_code == 401
    assert (await desk.look(run))["status"] == "waiting"
    await desk.decide(run, "guarded")
    await desk.until_over(run)


@pytest.mark.parametrize("same_id", [True, False])
async def test_it_asks_again_when_changes_are_requested(desk: Desk, same_id: bool):
    name = f"revise-{same_id}"
    run = await desk.start("peer.revise", request_id=name, same_id=same_id)
    ids = [name] * 3 if same_id else [f"{name}-{number}" for number in (1, 2, 3)]
    for number, (request_id, decision) in enumerate(zip(ids, ["request_changes"] * 2 + ["approved"], strict=True)):
        await _until_asked(desk, run, number + 1)
        await desk.decide(run, request_id, decision, feedback=f"look {number}", round=number + 1 if same_id else 1)
    over = await desk.until_over(run)
    assert [each["feedback"] for each in over["result"]] == ["look 0", "look 1", "look 2"]
    assert (over["status"], over["result"][-1]["approved"]) == ("succeeded", True)


async def test_a_rejection_reaches_the_code_and_the_run_stays_cancelled(desk: Desk, agent: Peer):
    run = await desk.start("peer.once", request_id="no")
    await desk.until_waiting(run)
    answered = await desk.decide(run, "no", "rejected", feedback="not this week")
    assert answered["new_status"] == "cancelled"
    over = await desk.until_reported(run)
    assert (over["status"], over["status_reason"]) == ("cancelled", "approval_rejected: not this week")
    assert (over["result"]["decision"], over["result"]["feedback"]) == ("rejected", "not this week")
    assert "no" in agent.journal("went_on")


async def test_an_expiry_reaches_the_code_and_the_run_stays_cancelled(desk: Desk):
    run = await desk.start("peer.once", request_id="late", expires_in_hours=1 / 3600)
    over = await desk.until_reported(run)
    assert (over["status"], over["status_reason"]) == ("cancelled", "approval_expired")
    assert (over["result"]["decision"], over["approval_status"]) == ("expired", "expired")
    late = await desk.webhook(run, "late")
    assert (late.status_code, late.json()["status"]) == (200, "already_processed")


async def test_an_expiry_that_is_no_time_fails_the_run_with_the_rule(desk: Desk):
    done = await desk.execute("peer.once", request_id="never", expires_in_hours=0)
    assert done["status"] == "failed"
    assert "must be a number from 0.000278 (1 s) to 8760" in done["error_message"]


async def test_a_question_that_the_code_waits_for_no_longer_is_withdrawn_at_the_run_s_end(desk: Desk):
    done = await desk.execute("peer.once", request_id="impatient", timeout=0.3)
    assert (done["status"], done["result"]["decision"]) == ("succeeded", "expired")
    assert (await desk.asked("impatient"))[0]["status"] == "withdrawn"


async def test_a_question_that_is_taken_back_lets_the_code_go_on(desk: Desk):
    run = await desk.start("peer.once", request_id="taken-back")
    await desk.until_waiting(run)
    asked = await desk.until_asked("taken-back")
    withdrawn = await desk.client.post(f"{API}/approvals/{asked['approval_id']}/withdraw")
    assert withdrawn.status_code == 200
    over = await desk.until_over(run)
    assert (over["status"], over["result"]["decision"]) == ("succeeded", "withdrawn")


async def test_notes_are_kept_once(desk: Desk):
    run = await desk.start("peer.noting", request_id="noted")
    await desk.until_waiting(run)
    await desk.decide(run, "noted")
    await desk.until_over(run)

    async def all_there() -> bool:
        return len((await desk.look(run))["notes"]) >= 3

    await until(all_there)
    notes = (await desk.look(run))["notes"]
    assert sorted((note["message"], note["tags"]) for note in notes) == [
        ("Execution paused — waiting for approval noted", ["approval", "waiting"]),
        ("after the pause", []),
        ("before — the pause", ["first"]),
    ]


async def test_cancelling_reaches_the_code(desk: Desk, agent: Peer):
    run = await desk.start("peer.endless", name="endless")
    await until(lambda: _holds(lambda: "endless" in agent.journal("started")))
    cancelled = await desk.client.post(f"{API}/executions/{run}/cancel", json={"reason": "changed our minds"})
    assert cancelled.json()["status"] == "cancelled"
    await until(lambda: _holds(lambda: "endless" in agent.journal("stopped")))
    assert (await desk.look(run))["status_reason"] == "changed our minds"


async def test_cancelling_a_run_that_waits_ends_its_pause(desk: Desk):
    run = await desk.start("peer.once", request_id="dropped")
    await desk.until_waiting(run)
    await desk.client.post(f"{API}/executions/{run}/cancel", json={"reason": "no need"})
    run_now = await desk.look(run)
    assert (run_now["status"], run_now["approval_status"]) == ("cancelled", "withdrawn")
    assert (await desk.webhook(run, "dropped")).json()["status"] == "already_processed"


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("nothing", None),
        ("false", False),
        ("zero", 0),
        ("text", "täxt"),
        ("list", [1, {"a": []}]),
        ("set", [3]),
        ("moment", "2026-01-01T00:00:00+00:00"),
    ],
)
async def test_any_json_is_a_result(desk: Desk, kind: str, result: Any):
    done = await desk.execute("peer.returning", kind=kind)
    assert (done["status"], done["result"]) == ("succeeded", result)
    assert type(done["result"]) is type(result)


async def test_a_result_that_is_no_json_fails_the_run(desk: Desk):
    done = await desk.execute("peer.returning", kind="object")
    assert (done["status"], done["result"]) == ("failed", None)
    assert done["error_message"]


async def test_a_result_that_cannot_be_kept_fails_the_run(desk: Desk):
    done = await desk.execute("peer.returning", kind="nul")
    assert done["status"] == "failed"
    assert (await desk.look(done["execution_id"]))["status_reason"] == "result_unreadable"


async def test_a_result_that_the_sdk_cannot_send_leaves_the_run_to_its_operator(desk: Desk, agent: Peer):
    run = await desk.start("peer.returning", kind="nan")
    await until(lambda: _holds(lambda: f"Async status update for {run} failed" in agent.output()))
    assert (await desk.look(run))["status"] == "running"
    await desk.client.post(f"{API}/executions/{run}/cancel")
    assert (await desk.look(run))["status"] == "cancelled"


async def test_a_failure_brings_its_text_and_what_was_done(desk: Desk):
    done = await desk.execute("peer.failing", kind="plain")
    assert (done["status"], done["error_message"], done["result"]) == ("failed", "no such account", None)
    done = await desk.execute("peer.failing", kind="outcome")
    assert (done["status"], done["result"]) == ("failed", {"done": 1, "left": 1})
    run = await desk.look(done["execution_id"])
    assert (run["error"], run["status_reason"]) == ("half of it failed", "half_done")


async def test_arguments_that_do_not_fit_fail_the_run_with_what_the_agent_said(desk: Desk):
    done = await desk.execute("peer.slow", name="n", seconds="many")
    assert done["status"] == "failed"
    assert "seconds" in done["error_message"]


async def test_it_calls_a_function_through_the_control_plane(desk: Desk):
    done = await desk.execute("peer.calling", target="peer.returning", argument={"kind": "list"})
    assert (done["status"], done["result"]) == ("succeeded", {"answer": [1, {"a": []}]})


async def test_a_plain_function_is_called_too(desk: Desk):
    done = await desk.execute("peer.double", number=21)
    assert (done["status"], done["result"]) == ("succeeded", 42)
    done = await desk.execute("peer.calling", target="peer.double", argument={"number": 4})
    assert (done["status"], done["result"]) == ("succeeded", {"answer": 8})


async def test_a_plain_function_that_takes_its_time_ends_its_run(desk: Desk):
    done = await desk.execute("peer.sleepy", seconds=6)
    assert (done["status"], done["result"]) == ("succeeded", "awake")


async def test_it_calls_a_function_that_pauses(desk: Desk):
    run = await desk.start("peer.calling", target="peer.once", argument={"request_id": "asked-by-the-called"})
    asked = await desk.until_asked("asked-by-the-called")
    assert asked["execution_id"] != run
    assert (await desk.look(run))["status"] == "running"
    await desk.decide(asked["execution_id"], "asked-by-the-called")
    over = await desk.until_over(run)
    assert (over["status"], over["result"]["answer"]["approved"]) == ("succeeded", True)
    assert (await desk.look(asked["execution_id"]))["run_id"] == over["run_id"]


async def test_a_called_function_s_failure_reaches_its_caller(desk: Desk):
    done = await desk.execute("peer.calling", target="peer.failing", argument={"kind": "plain"})
    assert done["status"] == "failed"
    assert "no such account" in done["error_message"]


async def test_a_function_called_inside_of_the_agent_pauses_as_a_run_of_its_own(desk: Desk):
    run = await desk.start("peer.nesting", request_id="within")
    asked = await desk.until_asked("within")
    assert asked["execution_id"] != run
    await desk.decide(asked["execution_id"], "within")
    over = await desk.until_over(run)
    assert over["result"]["inner"]["approved"] is True
    inner = await desk.until_over(asked["execution_id"])
    assert (inner["status"], inner["reasoner"], inner["result"]["approved"]) == ("succeeded", "once", True)


async def test_the_sdk_s_client_alone_asks_polls_and_runs(desk: Desk, plane: Plane, peer_python: Path):
    program = [peer_python, PROGRAMS / "bare_client.py", plane.url, "bare-run"]
    process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    await desk.until_asked("bare")
    await desk.decide("bare-run", "bare", feedback="polled", response={"n": 0})
    printed, _ = await process.communicate()
    assert json.loads(printed.splitlines()[-1]) == {
        "asked": "bare",
        "before": "pending",
        "after": "approved",
        "response": {"decision": "approved", "feedback": "polled", "data": {"n": 0}},
        "responded": True,
        "waited": ["succeeded", [1, {"a": []}]],
        "blocked": ["succeeded", 4],
    }


async def test_a_function_that_nobody_registered_is_named_with_those_that_are(desk: Desk):
    unknown = await desk.client.post(f"{API}/execute/peer.nobody", json={"input": {}})
    assert (unknown.status_code, unknown.json()["error"]) == (404, "reasoner_not_found")
    assert {"once", "twice"} <= set(unknown.json()["registered"])


async def _until_asked(desk: Desk, execution_id: str, count: int) -> None:
    async def asked() -> bool:
        reply = await desk.client.get(f"{API}/approvals", params={"execution_id": execution_id})
        return len(reply.json()["approvals"]) == count

    await until(asked)


async def _holds(condition: Any) -> bool:
    return bool(condition())
