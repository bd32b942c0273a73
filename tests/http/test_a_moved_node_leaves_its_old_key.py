"""A node that is moved is its new key's alone: the one before, even one bound to it, sees and does nothing for it."""

import os

import httpx

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES, Key
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api, in_process, problem
from tests.postgres import Database

SETUP = Actor(ActorKind.SYSTEM, "test", "test")
NODE = {"node_id": "worker", "base_url": "http://10.1.2.3:8001", "reasoners": []}


async def make(api: Api, *allow: str) -> tuple[Key, str]:
    async with api.runtime.transaction() as conn:
        wanted = Wanted(name="agents", scopes=("agent",), node_id="worker", allow=allow)
        return await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)


async def post(api: Api, path: str, key: str, body: object) -> httpx.Response:
    return await api.client.post(f"/api/v1{path}", json=body, headers={"X-API-Key": key})


async def test_the_key_before_it_does_nothing_more_and_its_allowance_is_gone(database: Database):
    async with in_process(database, open_mode=False) as api:
        _, old = await make(api, "10.1.0.0/16:8001")
        new_key, new = await make(api)
        assert (await post(api, "/nodes/register", old, NODE)).status_code == 201
        run = {"node_id": "worker", "execution_id": "run-1"}
        assert (await post(api, "/executions", old, run)).status_code == 201
        assert problem(await post(api, "/nodes/worker/heartbeat", new, {})) == (403, "node_owned")
        async with api.runtime.transaction() as conn:
            await access.move_node(conn, "worker", new_key.key_id, SETUP)
    # A process that read neither key before it was moved; others follow within two seconds.
    async with in_process(database, open_mode=False) as api:
        asking = {"approval_request_id": "q", "callback_url": "http://10.1.2.3:8001/"}
        for path in ("/nodes/worker/heartbeat", "/nodes/worker/shutdown"):
            assert problem(await post(api, path, old, {})) == (403, "node_owned")
        assert problem(await post(api, "/nodes/register", old, NODE)) == (422, "callback_url_refused")
        public = NODE | {"base_url": "http://8.8.8.8"}
        assert problem(await post(api, "/nodes/register", old, public)) == (403, "node_owned")
        assert problem(await post(api, "/executions", old, run)) == (403, "node_owned")
        assert problem(await post(api, "/executions/run-1/request-approval", old, asking)) == (
            422,
            "callback_url_refused",
        )
        del asking["callback_url"]
        assert problem(await post(api, "/executions/run-1/request-approval", old, asking)) == (
            404,
            "execution_not_found",
        )
        assert (await post(api, "/executions/run-1/request-approval", new, asking)).status_code == 200
        seen = await api.client.get("/api/v1/executions", headers={"X-API-Key": old})
        assert seen.json()["executions"] == []
