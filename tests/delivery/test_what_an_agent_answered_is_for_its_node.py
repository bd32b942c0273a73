"""What an agent or a receiver answered is shown to that node's keys and to administrators, and to nobody else."""

import asyncio
import os
from typing import Any

import pytest

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api
from tests.receiver import Answer, Got, Receiver, reply

KEYS = {
    "bound": Wanted(name="bound", scopes=("agent",), node_id="node-1"),
    "owner": Wanted(name="owner", scopes=("agent",)),
    "caller": Wanted(name="caller", scopes=("agent",), node_id="node-2"),
    "review": Wanted(name="review", scopes=("review",)),
    "admin": Wanted(name="admin", scopes=("admin",)),
}
ANSWER = "no: the password of my database is hunter2"
TOLD = f"status 422: {ANSWER}"
HIDDEN = f"status 422: invalid reply, {len(ANSWER)} bytes"
Keys = dict[str, dict[str, str]]


@pytest.fixture
async def keys(api: Api) -> Keys:
    """The header of a key of each kind."""
    made = {}
    for name, wanted in KEYS.items():
        async with api.runtime.transaction() as conn:
            actor = Actor(ActorKind.SYSTEM, "test", "test")
            _, text = await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=actor)
        made[name] = {"X-API-Key": text}
    await api.runtime.settle_access()
    return made


async def join(api: Api, told: Receiver, key: dict[str, str], node_id: str = "node-1") -> None:
    body = {
        "node_id": node_id,
        "instance_id": f"of-{node_id}",
        "base_url": f"http://127.0.0.1:{told.port}",
        "version": "1",
        "reasoners": [{"name": "work"}],
        "features": {"replay": True, "fence": True},
    }
    answered = await api.client.post("/api/v1/nodes/register", json=body, headers=key)
    assert answered.status_code == 201, answered.text


async def shown(api: Api, path: str, key: dict[str, str]) -> dict[str, Any]:
    answered = await api.client.get(f"/api/v1{path}", headers=key)
    assert answered.status_code == 200, answered.text
    return dict(answered.json())


async def started(api: Api, key: dict[str, str], node_id: str = "node-1") -> dict[str, Any]:
    url = f"/api/v1/execute/{node_id}.work"
    answered = await api.client.post(url, json={"input": {}}, headers=key)
    assert answered.status_code == 200, answered.text
    return dict(answered.json())


async def test_a_refusal_is_read_by_its_node_and_administrators_only(api: Api, told: Receiver, keys: Keys, sql: Any):
    told.answers = [reply(422, ANSWER.encode())]
    await join(api, told, keys["bound"])
    run = await started(api, keys["caller"])
    assert (run["status_reason"], run["error_message"]) == ("agent_refused", HIDDEN)
    path = f"/executions/{run['execution_id']}"
    for name, seen in {"bound": TOLD, "admin": TOLD, "caller": HIDDEN, "review": HIDDEN}.items():
        one = await shown(api, path, keys[name])
        assert one["error"] == seen, name
        batch = await api.client.post(
            "/api/v1/executions/batch-status", json={"execution_ids": [run["execution_id"]]}, headers=keys[name]
        )
        assert batch.json().get(run["execution_id"], {}).get("error") in {seen, None}, name
    for name, seen in {"bound": TOLD, "admin": TOLD, "review": HIDDEN}.items():
        (listed,) = (await shown(api, "/executions", keys[name]))["executions"]
        assert listed["error"] == seen, name
    assert (await started(api, keys["bound"]))["error_message"] == TOLD
    assert await sql.fetchval("SELECT count(*) FROM history WHERE data::text LIKE '%hunter2%'") == 0
    assert await sql.fetchval("SELECT count(*) FROM executions WHERE error LIKE '%hunter2%'") == 0


async def test_the_key_that_owns_a_node_reads_its_answers(api: Api, told: Receiver, keys: Keys):
    told.answers = [reply(422, ANSWER.encode())]
    await join(api, told, keys["owner"], "node-3")
    run = await started(api, keys["caller"], "node-3")
    assert run["error_message"] == HIDDEN
    async with asyncio.timeout(10):  # what a key owns is read anew every two seconds
        while (await shown(api, f"/executions/{run['execution_id']}", keys["owner"]))["error"] != TOLD:
            await asyncio.sleep(0.05)


async def test_a_try_that_is_made_again_hides_its_answer_as_well(api: Api, told: Receiver, keys: Keys):
    told.answers = [reply(503, ANSWER.encode())]
    await join(api, told, keys["bound"])
    queued = await api.client.post("/api/v1/execute/async/node-1.work", json={"input": {}}, headers=keys["caller"])
    path = f"/executions/{queued.json()['execution_id']}"
    async with asyncio.timeout(10):
        while not (one := await shown(api, path, keys["caller"]))["last_error"]:
            await asyncio.sleep(0.01)
    assert one["last_error"] == HIDDEN.replace("422", "503")
    assert (await shown(api, path, keys["bound"]))["last_error"] == TOLD.replace("422", "503")


async def test_what_a_run_reported_itself_is_its_own(api: Api, told: Receiver, keys: Keys):
    told.answers = [reply(202, b'{"status":"processing"}')]
    await join(api, told, keys["bound"])
    calling = asyncio.create_task(started(api, keys["caller"]))
    (got,) = await told.wait_for(1)
    run, fence = got.headers["x-execution-id"], {"X-Holdshort-Fence": got.headers["x-holdshort-fence"]}
    report = {"status": "failed", "error": TOLD}
    await api.client.post(f"/api/v1/executions/{run}/status", json=report, headers=keys["bound"] | fence)
    assert (await calling)["error_message"] == TOLD
    assert (await shown(api, f"/executions/{run}", keys["review"]))["error"] == TOLD


def not_http(text: str) -> Answer:
    async def answer(_: Got, writer: asyncio.StreamWriter) -> None:
        writer.write(text.encode() + b"\r\n\r\n")
        writer.close()

    return answer


@pytest.mark.parametrize(
    "text",
    [
        f"HTTP/1.1 {ANSWER}",
        f"{ANSWER}",
        f"HTTP/1.1 200 OK\r\n({ANSWER}",
        f"HTTP/1.1 200 OK\r\nContent-Length: {ANSWER}",
    ],
)
async def test_an_answer_that_is_no_http_is_not_kept(api: Api, told: Receiver, keys: Keys, sql: Any, text: str):
    told.answers = [not_http(text)]
    asking = {"approval_request_id": "q", "callback_url": told.url}
    post = api.client.post
    await post("/api/v1/executions", json={"node_id": "node-1", "execution_id": "r"}, headers=keys["bound"])
    asked = await post("/api/v1/executions/r/request-approval", json=asking, headers=keys["bound"])
    decided = await post(
        f"/api/v1/approvals/{asked.json()['approval_id']}/decision",
        json={"decision": "approved"},
        headers=keys["review"],
    )
    assert decided.status_code == 200, decided.text
    async with asyncio.timeout(10):
        while not (fault := await sql.fetchval("SELECT last_error FROM deliveries")):
            await asyncio.sleep(0.01)
    assert "Error" in fault
    assert "hunter2" not in fault
