from tests.app import Api, problem

ASK = "/executions/run-1/request-approval"


async def test_asking_answers_with_the_approval_and_again_with_the_same(api: Api):
    await api.start()
    first = await api.ask(payload={"b": 1, "a": [1.10]}, approval_request_url="https://desk.example/1", round=1)
    assert set(first) == {
        "approval_request_id",
        "approval_request_url",
        "status",
        "approval_id",
        "round",
        "requested_at",
        "expires_at",
        "payload_digest",
        "response",
        "form",
    }
    assert (first["status"], first["round"], first["response"]) == ("pending", 1, None)
    assert first["requested_at"].endswith("Z")
    for path in (ASK, "/agents/node-1" + ASK, "/agents" + ASK, "/agents/" + ASK):
        body = {"approval_request_id": "q-1", "payload": {"a": [1.10], "b": 1}, "title": "later ones are ignored"}
        assert (await api.post(path, body)).json() == first
    assert (await api.get("/executions/run-1")).json()["status"] == "waiting"


async def test_a_null_counts_as_absent(api: Api):
    await api.start()
    names = ("round", "approval_request_url", "callback_url", "callback_secret", "expires_in_hours", "title", "form")
    fields = dict.fromkeys((*names, "description", "payload", "on_expiry", "decided_by"))
    asked = await api.ask(**fields, something_unknown=1)
    assert (asked["round"], asked["payload_digest"]) == (1, None)
    assert asked["approval_request_url"].startswith("http://127.0.0.1/inbox/apr_")


async def test_asking_is_refused_in_its_order(api: Api):
    await api.start()
    await api.ask(payload=1)
    again = {"approval_request_id": "q-1"}
    assert problem(await api.post("/executions/nobody/request-approval", again)) == (404, "execution_not_found")
    reply = await api.post("/agents/node-2" + ASK, again)
    assert problem(reply) == (403, "execution_ownership_mismatch")
    conflict = await api.post(ASK, {**again, "payload": 2})
    assert problem(conflict) == (409, "approval_request_conflict")
    assert problem(await api.post(ASK, {**again, "payload": 1, "on_expiry": "resume"}))[0] == 409
    higher = await api.post(ASK, {**again, "payload": 1, "round": 3})
    assert problem(higher) == (409, "round_not_open")
    assert higher.json()["newest_round"] == 1
    await api.post("/executions/run-1/status", {"status": "succeeded", "result": {"ok": True}})
    assert (await api.ask(payload=1))["status"] == "withdrawn"
    closed = await api.post(ASK, {"approval_request_id": "q-2"})
    assert problem(closed) == (409, "invalid_state")
    assert closed.json()["execution_status"] == "succeeded"
    assert closed.json()["status_reason"]


async def test_a_person_s_decision_is_applied_once_and_a_rival_learns_what_stands(api: Api):
    approval = await api.asked(payload="seen")
    digest = (await api.get(f"/approvals/{approval}")).json()["payload_digest"]
    assert problem(await api.decide(approval, payload_digest="0" * 64)) == (409, "approval_changed")
    assert problem(await api.decide(approval, round=2)) == (409, "approval_changed")
    first = await api.decide(
        approval, " Approve ", payload_digest=digest, round=1, feedback="a", reason="b", response=0
    )
    assert (first.json()["status"], first.json()["new_status"]) == ("processed", "running")
    same = (await api.decide(approval)).json()
    assert (same["status"], same["current_status"], same["approval_status"]) == (
        "already_processed",
        "running",
        "approved",
    )
    rival = await api.decide(approval, "reject")
    assert problem(rival) == (409, "already_decided")
    assert (rival.json()["approval_status"], rival.json()["approval_id"]) == ("approved", approval)
    shown = (await api.get(f"/approvals/{approval}")).json()["response"]
    assert shown == {"decision": "approved", "feedback": "a", "data": 0}


async def test_feedback_is_the_reason_when_there_is_no_feedback(api: Api):
    approval = await api.asked()
    await api.decide(approval, "reject", reason="because")
    assert (await api.get(f"/approvals/{approval}")).json()["response"]["feedback"] == "because"
    assert (await api.get("/executions/run-1")).json()["status_reason"] == "approval_rejected: because"


async def test_an_execution_s_only_question_needs_no_name_and_two_do(api: Api):
    await api.asked()
    path = "/executions/run-1/approval-response"
    second = (await api.ask("q-2"))["approval_id"]
    assert problem(await api.post(path, {"decision": "approved"})) == (409, "ambiguous_request_id")
    named = await api.post(path, {"decision": "approved", "approval_request_id": "q-2"})
    assert (named.json()["approval_id"], named.json()["new_status"]) == (second, "waiting")
    assert (await api.post(path, {"decision": "approved"})).json()["approval_request_id"] == "q-1"
    assert problem(await api.post("/executions/nobody/approval-response", {"decision": "approved"}))[0] == 404
    unknown = await api.post(path, {"decision": "approved", "approval_request_id": "q-9"})
    assert problem(unknown) == (404, "no_approval_request")


async def test_ending_a_question_says_what_stands(api: Api):
    approval = await api.asked()
    for path in ("withdraw", "expire", "withdraw"):
        reply = await api.client.post(f"/api/v1/approvals/{approval}/{path}")
        assert (reply.status_code, reply.json()["status"]) == (200, "withdrawn")
    for path in ("withdraw", "expire"):
        assert problem(await api.post(f"/approvals/apr_none/{path}")) == (404, "approval_not_found")


async def test_a_run_is_started_once_reported_once_and_noted_once(api: Api):
    start = {"node_id": "n", "execution_id": "r", "reasoner": "f", "input": {"a": 1.10}, "run_id": "x"}
    first, again = await api.post("/executions", start), await api.post("/executions", start)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert problem(await api.post("/executions", {**start, "node_id": "m"})) == (409, "execution_exists")
    made = await api.post("/executions", {"node_id": "n"})
    assert made.json()["execution_id"].startswith("exec_")
    note = {"message": "line", "note_id": "n-1", "tags": ["a"]}
    kept, again = [await api.post("/executions/r/notes", {**note, "message": words}) for words in ("line", "other")]
    assert (kept.status_code, again.status_code) == (201, 200)
    assert kept.json() == again.json()
    await api.post("/executions/r/status", {"status": "running"})
    ended = await api.post("/executions/r/status", {"status": "succeeded", "result": None})
    late = await api.post("/executions/r/status", {"status": "failed", "error": "late"})
    assert (ended.json()["status"], late.json()["status"]) == ("succeeded", "succeeded")
    shown = (await api.get("/executions/r")).json()
    assert (shown["input"], shown["result"], shown["error"]) == ({"a": 1.10}, None, None)
    assert [each["message"] for each in shown["notes"]] == ["line"]
    for path in ("/executions/none", "/executions/none/approval-status"):
        assert problem(await api.get(path))[0] == 404


async def test_cancelling_needs_no_body_and_withdraws_what_was_asked(api: Api):
    approval = await api.asked()
    reply = await api.client.post("/api/v1/executions/run-1/cancel")
    assert (reply.status_code, reply.json()["status"], reply.json()["status_reason"]) == (
        200,
        "cancelled",
        "cancelled_by_operator",
    )
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "withdrawn"
    assert (await api.decide(approval)).status_code == 409


async def test_a_report_that_is_too_large_ends_the_run_as_failed(api: Api):
    approval = await api.asked()
    reply = await api.post("/executions/run-1/status", {"status": "succeeded", "result": "x" * (8 * 1024 * 1024)})
    assert problem(reply) == (413, "body_too_large")
    run = (await api.get("/executions/run-1")).json()
    assert (run["status"], run["status_reason"], run["result"]) == ("failed", "result_too_large", None)
    assert (await api.get(f"/approvals/{approval}")).json()["status"] == "withdrawn"
    assert (await api.post("/executions/none/status", {"error": "x" * (8 * 1024 * 1024)})).status_code == 404
