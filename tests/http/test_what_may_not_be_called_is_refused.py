"""A caller hears at once that an address may not be called, by which rule and setting, and nothing was written."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from controlplane.domain import allow_list
from tests.app import Api, in_process, problem, served
from tests.http.refusals import faults
from tests.keys import RightKey, keep_keys
from tests.postgres import Database

METADATA = "http://169.254.169.254/latest/meta-data/"
SETTING = "HOLDSHORT_CALLBACK_ALLOW"
REFUSED = [
    ("http://127.0.0.1:8001/cb", "loopback", SETTING, "127.0.0.1 is a loopback address"),
    ("http://[::1]:8001/cb", "loopback", SETTING, "::1 is a loopback address"),
    ("http://localhost:8001/cb", "loopback", SETTING, "its host leads to a loopback address"),
    ("https://10.1.2.3/cb", "private", SETTING, "10.1.2.3 is a private address"),
    (METADATA, "metadata", None, "169.254.169.254 is the metadata service of a cloud"),
    ("http://[::ffff:a9fe:a9fe]/", "metadata", None, "is the metadata service of a cloud"),
    ("http://0x7f.1/", "host", None, "its host must be a name"),
    ("http://127.1/", "host", None, "its host must be a name"),
    ("http://bücher.example/", "host", None, "its xn-- form"),
]


@pytest.fixture
async def closed(database: Database) -> AsyncIterator[Api]:
    """An application as `serve` runs it: nothing on this machine may be called."""
    async with in_process(database, open_mode=False) as made:
        made.client.auth = RightKey(await keep_keys(database))
        yield made


def refused(reply: httpx.Response, field: str, rule: str, setting: str | None, why: str) -> None:
    """The reply names the field, the rule and the setting."""
    assert problem(reply) == (422, "callback_url_refused")
    body = reply.json()
    assert (body["rule"], body.get("setting")) == (rule, setting)
    ((named),) = faults(reply)
    assert named["field"] == field
    assert why in named["rule"]
    assert body["detail"] == f"{field}: {named['rule']}"


async def register(api: Api, base_url: str) -> httpx.Response:
    body: dict[str, Any] = {"node_id": "node-1", "base_url": base_url, "reasoners": [{"name": "work"}]}
    return await api.post("/nodes/register", body)


@pytest.mark.parametrize(("url", "rule", "setting", "why"), REFUSED)
async def test_a_callback_that_may_not_be_called_opens_no_approval(
    closed: Api, sql: Any, url: str, rule: str, setting: str | None, why: str
):
    await closed.start()
    asked = await closed.post("/executions/run-1/request-approval", {"approval_request_id": "q", "callback_url": url})
    refused(asked, "callback_url", rule, setting, why)
    assert await sql.fetchval("SELECT count(*) FROM approvals") == 0
    assert (await closed.get("/executions/run-1")).json()["status"] == "running"


@pytest.mark.parametrize(("url", "rule", "setting", "why"), REFUSED)
async def test_a_callback_is_not_moved_there(closed: Api, url: str, rule: str, setting: str | None, why: str):
    approval = await closed.asked(callback_url="https://93.184.215.14/cb")
    moved = await closed.post(f"/approvals/{approval}/callback", {"callback_url": url})
    refused(moved, "callback_url", rule, setting, why)
    await closed.decide(approval)
    (row,) = (await closed.get("/deliveries")).json()["deliveries"]
    assert row["url"] == "https://93.184.215.14/cb"


@pytest.mark.parametrize(("url", "rule", "setting", "why"), REFUSED)
async def test_a_node_is_not_registered_there(
    closed: Api, sql: Any, url: str, rule: str, setting: str | None, why: str
):
    refused(await register(closed, url), "base_url", rule, setting, why)
    assert await sql.fetchval("SELECT (SELECT count(*) FROM nodes) + (SELECT count(*) FROM instances)") == 0


async def test_registering_a_node_grants_nothing_by_itself(database: Database):
    """Neither to its own callbacks on another port of its host, nor to those of others."""
    async with in_process(database, open_mode=False, callback_allow=allow_list.parse("127.0.0.1:8001")) as api:
        api.client.auth = RightKey(await keep_keys(database))
        assert (await register(api, "http://127.0.0.1:8001")).status_code == 201
        await api.start()
        asked = {"approval_request_id": "q", "callback_url": "http://127.0.0.1:8002/cb"}
        refused(
            await api.post("/executions/run-1/request-approval", asked),
            "callback_url",
            "loopback",
            SETTING,
            "127.0.0.1 is a loopback address",
        )
        asked["callback_url"] = "http://127.0.0.1:8001/cb"
        assert (await api.post("/executions/run-1/request-approval", asked)).status_code == 200


async def test_a_name_that_does_not_resolve_is_accepted_and_judged_when_it_is_called(closed: Api):
    await closed.asked(callback_url="http://no-such-name.invalid/cb")
    assert (await register(closed, "http://no-such-name.invalid:8001")).status_code == 201


async def test_in_open_mode_loopback_may_be_called_and_nothing_else_more(api: Api):
    for number, url in enumerate(("http://127.0.0.1:1/", "http://[::1]:1/", "http://localhost:1/")):
        await api.asked("q", f"run-{number}", callback_url=url)
    assert (await register(api, "http://localhost:8001")).status_code == 201
    refused(await register(api, "http://10.0.0.1"), "base_url", "private", SETTING, "10.0.0.1 is a private address")
    refused(await register(api, METADATA), "base_url", "metadata", None, "169.254.169.254 is")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"])
async def test_the_address_that_the_server_listens_on_is_never_called(database: Database, host: str):
    async with served(database) as api:
        reply = await register(api, f"http://{host}:{api.port}")
        refused(reply, "base_url", "own", None, "the address that this server listens on, which is never called")
        assert (await register(api, f"http://{host}:{api.port - 1}")).status_code == 201
