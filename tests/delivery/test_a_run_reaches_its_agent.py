"""A call of a reasoner reaches an instance, waits for the end of the run, and says what became of it."""

import asyncio
import json
from typing import Any

import pytest

from tests.app import Api, in_process, problem, until
from tests.postgres import Database
from tests.receiver import Receiver, hang, reply

ACCEPTED = reply(202, b'{"status":"processing"}')


async def join(api: Api, told: Receiver, instance_id: str = "i1", *, replay: bool = True, **changes: Any) -> None:
    """Register an instance of node-1 that listens where the receiver does."""
    body = {
        "node_id": "node-1",
        "instance_id": instance_id,
        "base_url": f"http://127.0.0.1:{told.port}",
        "version": "1",
        "reasoners": [{"name": "work"}],
        "features": {"replay": replay, "fence": replay},
    }
    answered = await api.post("/nodes/register", body | changes)
    assert answered.status_code == 201, answered.text


def named(told: Receiver, number: int = 0) -> tuple[str, dict[str, str]]:
    """Which run an agent was sent, and the header that says under which fence it speaks."""
    headers = told.got[number].headers
    return headers["x-execution-id"], {"X-Holdshort-Fence": headers["x-holdshort-fence"]}


async def report(api: Api, told: Receiver, status: str = "succeeded", number: int = 0, **fields: Any) -> None:
    """Say how the run ended, as the agent that was sent it."""
    execution_id, fence = named(told, number)
    url = f"/api/v1/executions/{execution_id}/status"
    answered = await api.client.post(url, json={"status": status} | fields, headers=fence)
    assert answered.status_code == 200, answered.text


async def test_a_call_waits_for_the_end_and_gets_the_result(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    calling = asyncio.create_task(api.post("/execute/node-1.work?wait=30", {"input": {"a": 1}}))
    (got,) = await told.wait_for(1)
    assert (got.path, got.body) == ("/reasoners/work", {"a": 1})
    await report(api, told, result={"n": 1.5})
    answered = await calling
    assert answered.status_code == 200, answered.text
    body = answered.json()
    assert (body["status"], body["result"], body["error_message"]) == ("succeeded", {"n": 1.5}, None)
    assert body["duration_ms"] >= 0
    assert answered.headers["X-Execution-ID"] == body["execution_id"] == got.headers["x-execution-id"]
    assert body["run_id"] == got.headers["x-run-id"] == got.headers["x-workflow-id"]


async def test_a_failed_run_answers_with_its_error(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    calling = asyncio.create_task(api.post("/execute/node-1.work", {"input": {}}))
    await told.wait_for(1)
    await report(api, told, "failed", error="it broke")
    body = (await calling).json()
    assert (body["status"], body["error_message"], body["result"]) == ("failed", "it broke", None)


async def test_a_call_that_waited_long_enough_is_told_how_the_run_stands(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    answered = await api.post("/execute/node-1.work?wait=0", {"input": {}})
    assert answered.status_code == 202
    assert answered.json()["status"] == "queued"


async def test_an_async_call_is_answered_at_once(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    answered = await api.post("/execute/async/node-1.work", {"input": {}})
    assert answered.status_code == 202
    body = answered.json()
    assert (body["status"], body["target"], body["type"]) == ("queued", "node-1.work", "reasoner")
    await told.wait_for(1)
    assert named(told)[0] == body["execution_id"] == answered.headers["X-Execution-ID"]


async def test_the_same_key_joins_the_same_run_and_another_call_under_it_is_refused(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    key = {"Idempotency-Key": "k-1"}
    url = "/api/v1/execute/async/node-1.work"
    replies = await asyncio.gather(*(api.client.post(url, json={"input": {"a": 1}}, headers=key) for _ in range(8)))
    assert {each.status_code for each in replies} == {202}
    assert len({each.json()["execution_id"] for each in replies}) == 1
    other = await api.client.post(url, json={"input": {"a": 2}}, headers=key)
    assert problem(other) == (409, "idempotency_conflict")
    await report_when_there(api, told)
    ended = await api.client.post("/api/v1/execute/node-1.work", json={"input": {"a": 1}}, headers=key)
    assert (ended.status_code, ended.json()["result"]) == (200, "done")
    assert len(told.got) == 1


async def report_when_there(api: Api, told: Receiver) -> None:
    await told.wait_for(1)
    await report(api, told, result="done")


async def test_unknown_names_are_answered_with_those_there_are(api: Api, told: Receiver):
    await join(api, told)
    unknown = await api.post("/execute/other.work", {"input": {}})
    assert problem(unknown) == (404, "node_not_found")
    assert unknown.json()["registered"] == ["node-1"]
    wrong = await api.post("/execute/node-1.play", {"input": {}})
    assert problem(wrong) == (404, "reasoner_not_found")
    assert wrong.json()["registered"] == ["work"]
    assert problem(await api.post("/execute/work", {"input": {}})) == (404, "node_not_found")


async def test_a_node_whose_name_holds_dots_is_found(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told, node_id="a.b", reasoners=[{"name": "c.d"}])
    assert (await api.post("/execute/async/a.b.c.d", {"input": {}})).status_code == 202
    (got,) = await told.wait_for(1)
    assert got.path == "/reasoners/c.d"


async def test_past_the_limit_of_waiting_runs_the_caller_is_told_to_come_back(database: Database, told: Receiver):
    async with in_process(database, node_queue=2) as api:
        await join(api, told)
        for _ in range(2):
            assert (await api.post("/execute/async/node-1.work", {"input": {}})).status_code == 202
        full = await api.post("/execute/async/node-1.work", {"input": {}})
        assert problem(full) == (429, "queue_full")
        assert int(full.headers["Retry-After"]) >= 1


@pytest.mark.parametrize(
    ("answer", "reason", "said"),
    [
        (reply(404, b'{"error":"no such"}'), "agent_refused", 'status 404: {"error":"no such"}'),
        (reply(422, b"bad input"), "agent_refused", "status 422: bad input"),
        (reply(200, b"<html>hello"), "agent_reply_invalid", "status 200: <html>hello"),
        (reply(302, b"", "Location: http://127.0.0.1:1/"), "agent_reply_invalid", "status 302"),
        (reply(200, b"x" * 5000), "agent_reply_invalid", "status 200: " + "x" * 2048),
    ],
)
async def test_an_agent_that_answers_nonsense_fails_the_run_with_what_it_said(
    api: Api, told: Receiver, answer: Any, reason: str, said: str
):
    told.answers = [answer]
    await join(api, told)
    body = (await api.post("/execute/node-1.work", {"input": {}})).json()
    assert (body["status"], body["status_reason"], body["error_message"]) == ("failed", reason, said)


async def test_an_agent_that_answers_with_the_result_has_run_it(api: Api, told: Receiver):
    told.answers = [reply(200, b'{"n": 1.10}')]
    await join(api, told)
    answered = await api.post("/execute/node-1.work", {"input": {}})
    assert answered.json()["status"] == "succeeded"
    assert b'"result":{"n": 1.10}' in answered.content


async def test_an_agent_that_is_not_ready_is_tried_again_with_its_last_error_to_be_seen(api: Api, told: Receiver):
    told.answers = [reply(503, b"starting"), ACCEPTED]
    await join(api, told)
    run = (await api.post("/execute/async/node-1.work", {"input": {}})).json()["execution_id"]
    await told.wait_for(2)
    assert [got.headers["x-holdshort-fence"] for got in told.got] == ["1", "2"]
    shown = (await api.get(f"/executions/{run}")).json()
    assert (shown["status"], shown["attempts"], shown["fence"]) == ("running", 2, 2)
    await report(api, told, number=1)


async def test_an_unreachable_agent_leaves_the_run_queued_with_the_error(api: Api, told: Receiver):
    await join(api, told, base_url="http://127.0.0.1:9")
    run = (await api.post("/execute/async/node-1.work", {"input": {}})).json()["execution_id"]
    shown: dict[str, Any] = {}
    async with asyncio.timeout(10):
        while not shown.get("last_error"):
            shown = (await api.get(f"/executions/{run}")).json()
    assert (shown["status"], shown["status_reason"]) == ("queued", "dispatch_failed")
    assert "ConnectError" in shown["last_error"]


async def test_a_cancel_reaches_the_agent_of_a_running_run(api: Api, told: Receiver):
    told.answers = [ACCEPTED, reply(200)]
    await join(api, told)
    await api.post("/execute/async/node-1.work", {"input": {}})
    await told.wait_for(1)
    execution_id, fence = named(told)
    assert (await api.post(f"/executions/{execution_id}/cancel", {"reason": "enough"})).status_code == 200
    _, got = await told.wait_for(2)
    assert got.path == f"/_internal/executions/{execution_id}/cancel"
    assert (got.body, got.headers["x-holdshort-fence"]) == ({"reason": "enough"}, fence["X-Holdshort-Fence"])
    late = await api.client.post(
        f"/api/v1/executions/{execution_id}/status", json={"status": "succeeded", "result": 1}, headers=fence
    )
    assert (late.json()["status"], late.json()["result"]) == ("cancelled", 1)


async def test_a_silent_agent_of_older_make_is_sent_its_run_once(api: Api, told: Receiver):
    released = asyncio.Event()
    told.answers = [hang(released)]
    await join(api, told, replay=False)
    run = (await api.post("/execute/async/node-1.work", {"input": {}})).json()["execution_id"]
    await told.wait_for(1)
    shown: dict[str, Any] = {}
    async with asyncio.timeout(20):
        while not shown.get("last_error"):
            shown = (await api.get(f"/executions/{run}")).json()
    released.set()
    assert (shown["status"], len(told.got)) == ("running", 1)
    assert "the agent may have it" in shown["last_error"]


async def test_a_call_gets_its_end_though_another_process_wrote_it(database: Database, told: Receiver):
    told.answers = [ACCEPTED]
    async with in_process(database, workers=True) as one, in_process(database, workers=True) as other:
        await join(one, told)
        calling = asyncio.create_task(one.post("/execute/node-1.work", {"input": {}}))
        await told.wait_for(1)
        await report(other, told, result="from there")
        assert (await calling).json()["result"] == "from there"


async def test_a_stopping_server_answers_with_the_run_as_it_stands(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    calling = asyncio.create_task(api.post("/execute/node-1.work?wait=600", {"input": {}}))
    await told.wait_for(1)
    await until(lambda: len(api.runtime.runs) == 1)
    api.runtime.stop()
    answered = await calling
    assert (answered.status_code, answered.json()["status"]) == (202, "running")


@pytest.mark.parametrize("wait", ["-1", "601", "nan", "soon"])
async def test_a_wait_out_of_bounds_is_refused(api: Api, wait: str):
    refused = await api.post(f"/execute/node-1.work?wait={wait}", {"input": {}})
    assert problem(refused) == (422, "invalid_field")


@pytest.mark.parametrize("header", ["X-Run-ID", "X-Parent-Execution-ID", "Idempotency-Key"])
@pytest.mark.parametrize("value", ["caf\u00e9".encode("latin-1"), b"x" * 256])
async def test_a_name_that_no_agent_can_be_sent_is_refused(api: Api, header: str, value: bytes):
    """Taken, it would be tried for a day: headers are ASCII."""
    headers = {header.encode(): value, b"Content-Type": b"application/json"}
    refused = await api.client.post("/api/v1/execute/async/node-1.work", content=b"{}", headers=headers)
    assert problem(refused) == (422, "invalid_field")


async def test_a_body_that_is_no_json_and_a_webhook_are_refused(api: Api, told: Receiver):
    await join(api, told)
    raw = await api.client.post(
        "/api/v1/execute/node-1.work", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert problem(raw) == (400, "invalid_body")
    webhook = await api.post("/execute/node-1.work", {"input": {}, "webhook": {"url": "http://x"}})
    assert problem(webhook) == (422, "invalid_field")
    ignored = await api.post("/execute/async/node-1.work", {"input": {}, "webhook": None, "context": {"a": 1}})
    assert ignored.status_code == 202


async def test_input_is_handed_on_as_the_bytes_that_came(api: Api, told: Receiver):
    told.answers = [ACCEPTED]
    await join(api, told)
    raw = json.dumps({"input": {"n": 1}}).replace("1", "1.10").encode()
    await api.client.post(
        "/api/v1/execute/async/node-1.work", content=raw, headers={"Content-Type": "application/json"}
    )
    (got,) = await told.wait_for(1)
    assert got.raw == b'{"n": 1.10}'
