import base64
import hashlib
import hmac
from typing import Any

import pytest

from tests.app import Api, in_process
from tests.postgres import Database
from tests.receiver import Got, Receiver

PLAIN = "a-plain-secret-of-text"
ENCODED = "whsec_" + base64.b64encode(b"twenty-four-random-bytes").decode()


def signed_with(key: bytes, got: Got) -> bool:
    """Check a Standard Webhooks signature from its definition, apart from the code under test."""
    signed = f"{got.headers['webhook-id']}.{got.headers['webhook-timestamp']}.".encode() + got.raw
    mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return got.headers["webhook-signature"] == f"v1,{mac}"


async def test_body_and_headers_are_as_documented(api: Api, told: Receiver):
    approval = await api.asked(callback_url=told.url)
    await api.decide(approval, feedback="fine", response={"a": 1.10})
    (got,) = await told.wait_for(1)
    assert got.path == "/webhooks/approval"
    assert got.body == {
        "execution_id": "run-1",
        "approval_request_id": "q-1",
        "approval_id": approval,
        "round": 1,
        "decision": "approved",
        "new_status": "running",
        "feedback": "fine",
        "response": {"a": 1.10},
        "data": {"a": 1.10},
    }
    assert b'{"a": 1.1' in got.raw or b'{"a":1.1' in got.raw
    assert got.headers["content-type"] == "application/json"
    assert got.headers["user-agent"].startswith("holdshort/")
    assert abs(int(got.headers["webhook-timestamp"]) - api.runtime.unix()) < 30
    assert "webhook-signature" not in got.headers
    (row,) = (await api.get("/deliveries")).json()["deliveries"]
    assert row["delivery_id"] == got.headers["webhook-id"]


@pytest.mark.parametrize(("secret", "key"), [(PLAIN, PLAIN.encode()), (ENCODED, b"twenty-four-random-bytes")])
async def test_it_is_signed_when_there_is_a_secret(api: Api, told: Receiver, secret: str, key: bytes):
    await api.decide(await api.asked(callback_url=told.url, callback_secret=secret))
    (got,) = await told.wait_for(1)
    assert signed_with(key, got)
    assert not signed_with(b"another", got)
    listed = await api.get("/deliveries")
    assert secret not in listed.text


async def test_feedback_is_always_text_and_data_is_null_when_there_is_none(api: Api, told: Receiver):
    await api.decide(await api.asked(callback_url=told.url), "rejected")
    (got,) = await told.wait_for(1)
    assert (got.body["feedback"], got.body["response"], got.body["data"]) == ("", None, None)
    assert (got.body["decision"], got.body["new_status"]) == ("rejected", "cancelled")


async def test_every_end_is_told_but_what_an_agent_s_own_end_leaves(api: Api, told: Receiver, sql: Any):
    ends = {
        "withdrawn": ("/approvals/{}/withdraw", {}),
        "expired": ("/approvals/{}/expire", {}),
        "cancelled": ("/executions/run-cancelled/cancel", {}),
        "reported": ("/executions/run-reported/status", {"status": "failed"}),
    }
    for name, (path, body) in ends.items():
        approval = await api.asked("q", f"run-{name}", callback_url=told.url)
        await api.post(path.format(approval), body)
    await api.asked("q", "run-late", callback_url=told.url, expires_in_hours=1 / 3600)
    got = await told.wait_for(4)
    assert {each.body["execution_id"]: each.body["decision"] for each in got} == {
        "run-withdrawn": "withdrawn",
        "run-expired": "expired",
        "run-cancelled": "withdrawn",
        "run-late": "expired",
    }
    assert await sql.fetchval("SELECT count(*) FROM deliveries") == 4


async def test_nobody_is_told_without_an_address(api: Api, sql: Any):
    await api.decide(await api.asked())
    assert await sql.fetchval("SELECT count(*) FROM deliveries") == 0


async def test_another_process_tells_when_the_one_that_decided_cannot(database: Database, told: Receiver):
    async with in_process(database) as deciding, in_process(database, workers=True, listen=False):
        await deciding.decide(await deciding.asked(callback_url=told.url))
        assert (await told.wait_for(1, seconds=4))[0].body["decision"] == "approved"


async def test_two_processes_tell_once(database: Database, told: Receiver, sql: Any):
    async with in_process(database, workers=True) as one, in_process(database, workers=True) as two:
        for number in range(10):
            approval = await one.asked("q", f"run-{number}", callback_url=told.url)
            await (one if number % 2 else two).decide(approval)
        await told.wait_for(10)
    assert len({got.headers["webhook-id"] for got in told.got}) == len(told.got) == 10
    assert await sql.fetchval("SELECT count(*) FROM deliveries WHERE status = 'delivered'") == 10
