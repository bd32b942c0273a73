import asyncio
from typing import Any

import httpx
import pytest

from tests.app import Api, in_process, problem, served, until
from tests.postgres import Database

POLL_BOUND_SECONDS = 3.0  # the promise is one second; the rest is for a machine that does other things too
LISTENERS = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


def waiting(api: Api, *, seconds: float = 30, **query: Any) -> "asyncio.Task[httpx.Response]":
    return asyncio.create_task(api.get("/executions/run-1/approval-status", wait=seconds, **query))


async def held(api: Api, count: int = 1) -> None:
    """Return once so many calls wait."""
    await until(lambda: len(api.runtime.waits) == count)


async def test_one_that_is_final_is_answered_at_once(api: Api):
    approval = await api.asked()
    await api.decide(approval, "rejected", feedback="no", response={"a": 1})
    status = (await waiting(api)).json()
    assert (status["status"], status["execution_status"]) == ("rejected", "cancelled")
    assert status["response"] == {"decision": "rejected", "feedback": "no", "data": {"a": 1}}
    shared = await api.post("/approvals/wait", {"approval_ids": [approval], "wait": 30})
    assert shared.json() == {"approvals": [status]}


async def test_a_decision_in_this_process_ends_it(api: Api):
    approval = await api.asked()
    calls = [
        waiting(api),
        waiting(api, approval_request_id="q-1"),
        waiting(api, approval_request_id=approval),
        asyncio.create_task(api.get("/agents/node-1/executions/run-1/approval-status", wait=30)),
        asyncio.create_task(api.client.get("/api/v1/agents//executions/run-1/approval-status?wait=30")),
        asyncio.create_task(api.post("/approvals/wait", {"approval_ids": [approval, "apr_nobody"], "wait": 30})),
    ]
    await held(api, len(calls))
    await api.decide(approval)
    bodies = [(await call).json() for call in calls]
    assert [body.get("status") for body in bodies[:-1]] == ["approved"] * 5
    assert [each["approval_id"] for each in bodies[-1]["approvals"]] == [approval]
    assert len(api.runtime.waits) == 0


@pytest.mark.parametrize("listen", [True, False])
async def test_a_decision_in_another_process_ends_it(database: Database, listen: bool):
    loop = asyncio.get_running_loop()
    async with (
        in_process(database, workers=True, listen=listen) as here,
        in_process(database, workers=True, listen=listen) as there,
    ):
        for number in range(3):
            approval = await here.asked(f"q-{number}", f"run-{number}")
            call = asyncio.create_task(here.post("/approvals/wait", {"approval_ids": [approval], "wait": 30}))
            await held(here)
            begun = loop.time()
            assert (await there.decide(approval)).json()["status"] == "processed"
            assert [each["approval_id"] for each in (await call).json()["approvals"]] == [approval]
            assert loop.time() - begun < POLL_BOUND_SECONDS


async def test_every_kind_of_end_ends_it(database: Database):
    async with in_process(database, workers=True) as api:
        ends = {
            "withdrawn": "/approvals/{}/withdraw",
            "expired": "/approvals/{}/expire",
            "cancelled": "/executions/run-cancelled/cancel",
            "reported": "/executions/run-reported/status",
        }
        for name, path in ends.items():
            approval = await api.asked("q", f"run-{name}")
            call = asyncio.create_task(api.get(f"/executions/run-{name}/approval-status", wait=30))
            await held(api)
            await api.post(path.format(approval), {"status": "failed"} if name == "reported" else {})
            assert (await call).json()["status"] == ("expired" if name == "expired" else "withdrawn")
        await api.asked("q", "run-late", expires_in_hours=1 / 3600)
        assert (await api.get("/executions/run-late/approval-status", wait=30)).json()["status"] == "expired"


async def test_time_that_passes_answers_with_what_stands(api: Api):
    approval = await api.asked()
    assert (await waiting(api, seconds=0.05)).json()["status"] == "pending"
    assert (await api.post("/approvals/wait", {"approval_ids": [approval], "wait": 0.05})).json() == {"approvals": []}
    assert (await api.post("/approvals/wait", {"approval_ids": [approval]})).json() == {"approvals": []}


async def test_past_the_limit_the_answer_is_an_immediate_pending(database: Database):
    async with in_process(database, max_waits=2) as api:
        approval = await api.asked()
        calls = [waiting(api), waiting(api)]
        await held(api, 2)
        async with asyncio.timeout(5):
            assert (await waiting(api)).json()["status"] == "pending"
        await api.decide(approval)
        assert [(await call).json()["status"] for call in calls] == ["approved"] * 2


async def test_the_approvals_of_all_calls_together_are_bounded_too(database: Database):
    async with in_process(database, max_waits=3) as api:
        many = [f"apr_{number}" for number in range(9_000)]
        call = asyncio.create_task(api.post("/approvals/wait", {"approval_ids": many, "wait": 30}))
        await held(api)
        async with asyncio.timeout(5):
            more = await api.post("/approvals/wait", {"approval_ids": [f"{each}x" for each in many], "wait": 30})
        assert more.json() == {"approvals": []}
        approval = await api.asked()
        waits = waiting(api)
        await held(api, 2)
        await api.decide(approval)
        assert (await waits).json()["status"] == "approved"
        api.runtime.stop()
        assert (await call).json() == {"approvals": []}


async def test_a_shared_wait_answers_with_those_that_are_final_and_only_those(api: Api):
    await api.start()
    approvals = [(await api.ask(f"q-{number}"))["approval_id"] for number in range(4)]
    many = approvals + [f"apr_{number}" for number in range(9_000)]

    async def wait() -> set[str]:
        reply = await api.post("/approvals/wait", {"approval_ids": many, "wait": 30})
        return {each["approval_id"] for each in reply.json()["approvals"]}

    call = asyncio.create_task(wait())
    await held(api)
    await api.decide(approvals[2])
    assert await call == {approvals[2]}
    many.remove(approvals[2])
    call = asyncio.create_task(wait())
    await held(api)
    await api.decide(approvals[0], "rejected")
    assert await call == {approvals[0], approvals[1], approvals[3]}


async def test_it_means_the_approval_that_was_newest_when_it_came(api: Api):
    first = await api.asked()
    call = waiting(api)
    await held(api)
    second = (await api.ask("q-2"))["approval_id"]
    await api.decide(second)
    assert not call.done()
    await api.decide(first)
    assert (await call).json()["approval_id"] == first


async def test_it_holds_no_database_connection(database: Database):
    async with in_process(database, pool_size=1) as api:
        approval = await api.asked()
        calls = [waiting(api) for _ in range(50)]
        await held(api, 50)
        async with asyncio.timeout(5):
            assert (await api.client.get("/health/ready")).status_code == 200
            assert (await api.decide(approval)).json()["status"] == "processed"
            assert {(await call).json()["status"] for call in calls} == {"approved"}


async def test_a_caller_that_goes_away_is_forgotten(database: Database):
    async with served(database) as api:
        await api.asked()
        here = f"Host: 127.0.0.1:{api.port}\r\n"
        head = f"GET /api/v1/executions/run-1/approval-status?wait=60 HTTP/1.1\r\n{here}\r\n"
        body = '{"approval_ids": ["apr_1"], "wait": 60}'
        shared = (
            f"POST /api/v1/approvals/wait HTTP/1.1\r\n{here}Content-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}"
        )
        writers = []
        for sent in (head, shared, head):
            _, writer = await asyncio.open_connection("127.0.0.1", api.port)
            writer.write(sent.encode())
            writers.append(writer)
        await held(api, 3)
        writers[0].close()
        await held(api, 2)
        writers[1].transport.abort()
        await held(api, 1)
        writers[2].close()
        await held(api, 0)


async def test_a_server_that_stops_answers_first(database: Database):
    async with served(database) as api:
        await api.asked()
        call = waiting(api)
        await held(api)
        api.runtime.stop()
        assert (await call).json()["status"] == "pending"
        assert problem(await api.client.get("/health/ready")) == (503, "database_unavailable")


async def test_a_listener_that_is_cut_off_costs_nothing_but_the_poll(database: Database, sql: Any):
    loop = asyncio.get_running_loop()
    async with in_process(database, workers=True) as here, in_process(database) as there:
        approval = await here.asked()
        call = waiting(here)
        await held(here)
        async with asyncio.timeout(10):
            while not (found := await sql.fetch(LISTENERS)):
                await asyncio.sleep(0.01)
        for row in found:
            await sql.execute("SELECT pg_terminate_backend($1)", row["pid"])
        begun = loop.time()
        await there.decide(approval)
        assert (await call).json()["status"] == "approved"
        assert loop.time() - begun < POLL_BOUND_SECONDS


async def test_its_owner_and_its_execution_must_be_right(api: Api):
    approval = await api.asked()
    await api.asked("q", "run-2")
    reply = await api.get("/agents/node-2/executions/run-1/approval-status", wait=30)
    assert problem(reply) == (403, "execution_ownership_mismatch")
    for query in ({"approval_request_id": "unknown"}, {"approval_request_id": "apr_unknown"}):
        assert problem(await api.get("/executions/run-1/approval-status", **query)) == (404, "no_approval_request")
    reply = await api.get("/executions/run-2/approval-status", approval_request_id=approval)
    assert problem(reply) == (404, "no_approval_request")
    assert problem(await api.get("/executions/nobody/approval-status")) == (404, "no_approval_request")
