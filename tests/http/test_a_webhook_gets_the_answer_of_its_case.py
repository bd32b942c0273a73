import asyncio
import json
from typing import Any

from controlplane.domain import signatures
from tests.app import OTHER_SECRET, SECRET, Api, in_process, problem
from tests.postgres import Database

PATH = "/api/v1/webhooks/approval-response"
HEX = "X-Webhook-Signature"
MIB = 1024 * 1024


def answer(request_id: str = "q-1", decision: str = "approved", **fields: Any) -> dict[str, Any]:
    return {"requestId": request_id, "decision": decision, **fields}


def standard(webhook_id: str, raw: bytes, now: int, secret: str = SECRET) -> dict[str, str]:
    signed = signatures.sign_standard(secret, raw, webhook_id=webhook_id, timestamp=now)
    return {"webhook-id": webhook_id, "webhook-timestamp": str(now), "webhook-signature": signed}


async def test_applied(api: Api, sql: Any):
    approval = await api.asked()
    reply = await api.webhook(answer(feedback="fine", response={"pages": [1, 2]}))
    assert reply.status_code == 200
    assert reply.json() == {
        "status": "processed",
        "execution_id": "run-1",
        "approval_request_id": "q-1",
        "approval_id": approval,
        "round": 1,
        "decision": "approved",
        "new_status": "running",
    }
    shown = (await api.get(f"/approvals/{approval}")).json()
    assert shown["response"] == {"decision": "approved", "feedback": "fine", "data": {"pages": [1, 2]}}
    settled = [entry for entry in shown["history"] if entry["type"] == "approval.approved"]
    assert [(entry["actor_kind"], entry["actor_name"]) for entry in settled] == [("sender", "desk")]
    assert await sql.fetchval("SELECT count(*) FROM history WHERE settles") == 1


async def test_the_envelope_decides_too(api: Api):
    await api.asked()
    body = {"id": "evt_1", "type": "request.completed", "createdAt": "x", "data": {"requestId": "q-1"}}
    body["data"] |= {"response": {"action": "request_changes", "feedback": "shorter"}}
    assert (await api.webhook(body)).json()["decision"] == "request_changes"


async def test_the_sender_s_own_value_is_kept_exactly(api: Api):
    for number, value in enumerate([None, {}, False, 0, "", [], 1.10, "text"]):
        approval = await api.asked(f"q-{number}", f"run-{number}")
        await api.webhook(answer(f"q-{number}", response=value))
        assert (await api.get(f"/approvals/{approval}")).json()["response"]["data"] == value


async def test_what_stands_is_said_to_a_rival_and_a_late_one(api: Api):
    approval = await api.asked()
    await api.webhook(answer())
    rival = (await api.webhook(answer(decision="rejected"))).json()
    stands = {"status": "already_processed", "current_status": "running", "approval_status": "approved"}
    assert stands.items() <= rival.items()
    assert (rival["decision"], rival["approval_id"]) == ("approved", approval)
    await api.asked("q-2", "run-2")
    await api.post(f"/approvals/{(await api.ask('q-2', 'run-2'))['approval_id']}/withdraw")
    late = (await api.webhook(answer("q-2"))).json()
    assert (late["status"], late["approval_status"]) == ("already_processed", "withdrawn")


async def test_past_the_deadline_it_is_too_late_though_nothing_has_swept(api: Api, sql: Any):
    approval = await api.asked(expires_in_hours=1)
    await sql.execute("UPDATE approvals SET requested_at = now() - interval '2 h', expires_at = now() - interval '1 s'")
    reply = (await api.webhook(answer())).json()
    assert (reply["status"], reply["decision"]) == ("already_processed", "expired")
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "expired"
    assert (await api.get("/executions/run-1")).json()["status"] == "cancelled"


async def test_seen_before_has_no_effect_under_any_header(api: Api, sql: Any):
    await api.asked()
    raw = json.dumps(answer()).encode()
    now = api.runtime.unix()
    first = (await api.webhook(raw)).json()
    for headers in (
        {HEX: signatures.sign_hex(SECRET, raw)},
        {"X-Hub-Signature-256": "sha256=" + signatures.sign_hex(SECRET, raw).upper()},
        {"X-Hax-Signature": signatures.sign_timestamped(SECRET, raw, timestamp=now)},
        standard("msg_1", raw, now),
        standard("msg_2", raw, now),
    ):
        assert (await api.webhook(raw, **headers)).json() == first | {"replayed": True}
    assert await sql.fetchval("SELECT count(*) FROM history WHERE settles") == 1


async def test_one_webhook_id_is_one_webhook_whatever_its_bytes(api: Api):
    await api.asked()
    now = api.runtime.unix()
    one, two = json.dumps(answer()).encode(), json.dumps(answer(), indent=1).encode()
    first = (await api.webhook(one, **standard("msg_1", one, now))).json()
    assert (await api.webhook(two, **standard("msg_1", two, now))).json() == first | {"replayed": True}


async def test_a_repeat_never_decides_another_run(api: Api):
    await api.asked("q-1", "run-a")
    raw = json.dumps(answer()).encode()
    assert (await api.webhook(raw)).json()["execution_id"] == "run-a"
    second = await api.asked("q-1", "run-b")
    assert problem(await api.webhook(raw)) == (409, "ambiguous_request_id")
    assert problem(await api.webhook(answer(decision="rejected"))) == (409, "ambiguous_request_id")
    assert (await api.get(f"/approvals/{second}")).json()["status"] == "pending"
    assert (await api.webhook(answer(executionId="run-b"))).json()["approval_id"] == second


async def test_a_repeat_never_decides_the_next_round(api: Api):
    await api.asked()
    raw = json.dumps(answer(decision="request_changes")).encode()
    await api.webhook(raw)
    second = await api.ask(round=2)
    assert problem(await api.webhook(raw)) == (409, "ambiguous_request_id")
    assert (await api.get(f"/approvals/{second['approval_id']}")).json()["status"] == "pending"
    assert (await api.webhook(answer(executionId="run-1", round=2))).json()["round"] == 2


async def test_unnamed_takes_the_newest_where_the_setting_says_so(database: Database):
    async with in_process(database, unnamed_webhooks="newest") as api:
        await api.asked("q-1", "run-a")
        newest = await api.asked("q-1", "run-b")
        assert (await api.webhook(answer())).json()["approval_id"] == newest


async def test_before_its_question_it_is_parked_and_then_used(api: Api):
    raw = json.dumps(answer(feedback="early")).encode()
    parked = await api.webhook(raw)
    assert (parked.status_code, parked.json()["status"]) == (202, "parked")
    assert parked.json()["expires_at"]
    assert (await api.webhook(raw)).status_code == 202
    other = await api.webhook(answer(decision="rejected"))
    assert (other.status_code, other.json()["status"], other.json()["decision"]) == (200, "already_parked", "approved")
    (listed,) = (await api.get("/parked")).json()["parked"]
    assert (listed["approval_request_id"], listed["sender"], listed["decision"]) == ("q-1", "desk", "approved")
    await api.start()
    asked = await api.ask()
    assert asked["status"] == "approved"
    assert asked["response"] == {"decision": "approved", "feedback": "early", "data": None}
    assert (await api.get("/parked")).json()["parked"] == []
    assert (await api.webhook(raw)).json()["replayed"] is True
    types = [entry["type"] for entry in (await api.get(f"/approvals/{asked['approval_id']}")).json()["history"]]
    assert {"approval.requested", "approval.approved", "webhook.parked_used"} <= {*types}


async def test_parked_for_one_run_is_not_used_by_another(api: Api):
    assert (await api.webhook(answer(executionId="run-2"))).status_code == 202
    await api.start()
    assert (await api.ask())["status"] == "pending"
    await api.start("run-2")
    assert (await api.ask("q-1", "run-2"))["status"] == "approved"


async def test_a_large_early_answer_is_429_and_taken_once_asked(api: Api):
    body = answer(response="x" * (64 * 1024))
    refused = await api.webhook(body)
    assert problem(refused) == (429, "too_many_parked")
    assert refused.headers["Retry-After"]
    await api.asked()
    assert (await api.webhook(body)).json()["status"] == "processed"


async def test_question_and_answer_at_the_same_instant_always_meet(api: Api):
    for number in range(10):
        await api.start(f"run-{number}")
    for number in range(10):
        body = answer(f"q-{number}")
        asked, told = await asyncio.gather(api.ask(f"q-{number}", f"run-{number}"), api.webhook(body))
        assert told.status_code in {200, 202}
        status = (await api.get(f"/approvals/{asked['approval_id']}")).json()["status"]
        assert status == "approved"


async def test_an_event_that_is_no_decision_is_ignored(api: Api):
    await api.asked()
    reply = await api.webhook({"type": "request.opened", "data": {"requestId": "q-1"}})
    assert (reply.status_code, reply.json()) == (200, {"status": "ignored", "type": "request.opened"})


async def test_what_it_names_must_be_there(api: Api):
    await api.asked()
    assert problem(await api.webhook({"approval_id": "apr_none", "decision": "approved"})) == (
        404,
        "approval_not_found",
    )
    assert problem(await api.webhook(answer("apr_none"))) == (404, "approval_not_found")
    assert problem(await api.webhook(answer(executionId="run-1", round=2))) == (409, "round_not_open")
    await api.start("run-2")
    await api.post("/executions/run-2/status", {"status": "succeeded"})
    assert problem(await api.webhook(answer("q-9", executionId="run-2"))) == (409, "invalid_state")


async def test_decided_by_takes_its_own_sender_only(api: Api):
    approval = await api.asked(decided_by="other")
    assert problem(await api.webhook(answer())) == (403, "sender_not_allowed")
    assert (await api.webhook(answer(), secret=OTHER_SECRET)).json()["approval_id"] == approval


BAD_BODIES = [
    (b"", "invalid_body"),
    (b"{", "invalid_body"),
    (b"[]", "invalid_body"),
    (b"{}", "request_id_missing"),
    (b'{"requestId": "q-1"}', "decision_missing"),
    (b'{"requestId": "q-1", "decision": "maybe"}', "invalid_decision"),
    (b'{"requestId": "q-1", "decision": "approved", "decision": "approved"}', "invalid_body"),
    (b'{"requestId": "q-1", "requestId": "q-1", "decision": "approved"}', "invalid_body"),
    (b'{"requestId": "q-1", "decision": "approved", "response": {"decision": "rejected"}}', "decision_conflict"),
    (b'{"requestId": "q\\u0000", "decision": "approved"}', "invalid_body"),
    (b'{"requestId": "q-1", "decision": "approved", "feedback": "\\ud800"}', "invalid_body"),
    (b'{"requestId": "q-1", "decision": "approved", "round": 0}', "invalid_body"),
    (b'{"requestId": "q-1", "decision": "approved", "x": ' + b"[" * 5000, "invalid_body"),
]


async def test_a_bad_body_is_400_and_decides_nothing(api: Api):
    approval = await api.asked()
    for raw, code in BAD_BODIES:
        assert problem(await api.webhook(raw)) == (400, code), raw[:80]
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"


async def test_the_field_that_breaks_json_is_named(api: Api):
    reply = await api.webhook(b'{"requestId": "q-1", "decision": "approved", "feedback": "\\u0000"}')
    assert [fault["field"] for fault in reply.json()["errors"]] == ["feedback"]


async def test_refusals_come_in_their_order(database: Database):
    async with in_process(database, webhook_secrets=()) as api:
        for headers in ({HEX: ""}, {HEX: "sha256=00"}, {"X-Nothing": "here"}):
            assert problem(await api.webhook(b"{", **headers)) == (503, "webhook_not_configured")
        assert problem(await api.webhook(b"x" * (MIB + 1), **{HEX: "no"})) == (413, "body_too_large")
    async with in_process(database) as api:
        assert problem(await api.webhook(b"x" * (MIB + 1), **{HEX: "no"})) == (413, "body_too_large")
        assert problem(await api.webhook(b"{", **{HEX: "no"})) == (401, "invalid_signature")
        assert problem(await api.webhook(b"{", **{"X-Nothing": "here"})) == (401, "missing_signature")
        stale = signatures.sign_timestamped(SECRET, b"{", timestamp=api.runtime.unix() - 400)
        assert problem(await api.webhook(b"{", **{HEX: stale})) == (401, "stale_signature")
        assert problem(await api.webhook(b"{")) == (400, "invalid_body")


async def test_only_the_signature_counts_neither_a_key_nor_the_content_type(api: Api):
    await api.asked()
    raw = json.dumps(answer()).encode()
    keys = {"Authorization": "Bearer x", "X-API-Key": "x"}
    assert problem(await api.client.post(PATH, content=raw, headers=keys)) == (401, "missing_signature")
    headers = {HEX: signatures.sign_hex(SECRET, raw), "Content-Type": "text/plain"}
    assert (await api.client.post(PATH, content=raw, headers=headers)).json()["status"] == "processed"


async def test_a_gateway_s_rewritten_bytes_are_no_proof(api: Api):
    approval = await api.asked()
    signed = {HEX: signatures.sign_hex(SECRET, json.dumps(answer()).encode())}
    assert problem(await api.webhook(json.dumps(answer(), indent=2).encode(), **signed)) == (401, "invalid_signature")
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"
