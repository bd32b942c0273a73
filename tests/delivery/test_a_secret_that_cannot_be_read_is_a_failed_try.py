"""A callback whose secret no master key opens is never sent unsigned: it fails, says why, and waits for the key."""

import base64
from typing import Any

import pytest

from controlplane.domain.vault import MasterKey, parse_master_keys
from controlplane.workers.dispatcher import Dispatcher
from tests.app import MASTER_KEY, Api, in_process
from tests.postgres import Database
from tests.receiver import Receiver

OTHER_KEYS = parse_master_keys(base64.b64encode(b"another-master-key-of-the-tests.").decode())
SECRET = "a-secret-of-this-request"


async def asked_and_decided(api: Api, told: Receiver, number: int, secret: str | None = SECRET) -> None:
    more = {} if secret is None else {"callback_secret": secret}
    await api.decide(await api.asked(f"q-{number}", f"run-{number}", callback_url=told.url, **more))


async def deliver(api: Api, sql: Any) -> None:
    await sql.execute("UPDATE deliveries SET due_at = clock_timestamp() WHERE status = 'pending'")
    dispatcher = Dispatcher(api.runtime)
    await dispatcher.step()
    await dispatcher.drain()


@pytest.mark.parametrize("keys", [OTHER_KEYS, ()], ids=["another", "none"])
async def test_it_waits_for_the_key_and_holds_up_nobody(
    database: Database, told: Receiver, sql: Any, keys: tuple[MasterKey, ...]
):
    async with in_process(database) as api:
        await asked_and_decided(api, told, 1)
        await asked_and_decided(api, told, 2, None)
    async with in_process(database, master_keys=keys) as api:
        await deliver(api, sql)
        rows = await sql.fetch(
            "SELECT d.execution_id, d.status, attempts, last_status, last_error"
            " FROM deliveries d JOIN approvals USING (approval_id) ORDER BY 1"
        )
        first, second = map(dict, rows)
        assert (first["status"], first["attempts"], first["last_status"]) == ("pending", 1, None)
        assert "master key" in first["last_error"]
        assert SECRET not in first["last_error"]
        assert second["status"] == "delivered"
        assert [got.body["execution_id"] for got in told.got] == ["run-2"]
    both = (*OTHER_KEYS, *parse_master_keys(MASTER_KEY))
    async with in_process(database, master_keys=both) as api:
        await deliver(api, sql)
    assert [got.body["execution_id"] for got in told.got] == ["run-2", "run-1"]
    assert "webhook-signature" in told.got[1].headers
    assert await sql.fetchval("SELECT count(*) FROM deliveries WHERE status <> 'delivered'") == 0


@pytest.mark.parametrize("kept", ["hsv1.", "hsv1.nokey.", "hsv1.nokey.!!", "hsv1.zürich.AAAA"])
async def test_after_three_days_it_is_dead_and_listed_whatever_is_kept(
    database: Database, told: Receiver, sql: Any, kept: str
):
    async with in_process(database) as api:
        await asked_and_decided(api, told, 1)
        await sql.execute("UPDATE deliveries SET secret = $1, told_at = clock_timestamp() - interval '73 h'", kept)
        await deliver(api, sql)
        (row,) = (await api.get("/deliveries")).json()["deliveries"]
    assert (row["status"], row["attempts"]) == ("dead", 1)
    assert "master key" in row["last_error"]
    assert told.got == []
