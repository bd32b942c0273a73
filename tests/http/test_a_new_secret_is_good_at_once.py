"""A key's new secret is taken as soon as it is printed, also where the key was used a moment ago."""

import asyncio
import os

import httpx

from controlplane.domain.events import Actor, ActorKind
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.runtime import key_book
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import Api, in_process
from tests.postgres import Database

SETUP = Actor(ActorKind.SYSTEM, "test", "test")


async def look(api: Api, key: str) -> httpx.Response:
    return await api.client.get("/api/v1/executions", headers={"X-API-Key": key})


async def test_a_new_secret_is_good_at_once_and_wrong_ones_cost_few_looks(database: Database):
    async with in_process(database, open_mode=False) as api:
        async with api.runtime.transaction() as conn:
            wanted = Wanted(name="agents", scopes=("agent",))
            key, text = await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)
        assert (await look(api, text)).status_code == 200
        read_at = asyncio.get_running_loop().time()
        async with api.runtime.transaction() as conn:
            rotated = await access.rotate(
                conn, key.key_id, entropy=os.urandom(ENTROPY_BYTES), others_for=3600, actor=SETUP
            )
        while asyncio.get_running_loop().time() < read_at + key_book.ROTATED_SECONDS:
            assert (await look(api, text)).status_code == 200
        assert (await look(api, rotated[1])).status_code == 200
        assert (await look(api, text)).status_code == 200


async def test_wrong_secrets_of_a_known_key_are_not_each_looked_up(database: Database):
    async with in_process(database, open_mode=False) as api:
        async with api.runtime.transaction() as conn:
            wanted = Wanted(name="agents", scopes=("agent",))
            key, text = await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP)
        assert (await look(api, text)).status_code == 200
        looks = 0
        find = api.runtime.keys._find

        async def counted(key_ids: list[str], known: bool) -> object:
            nonlocal looks
            looks += 1
            return await find(key_ids, known)

        api.runtime.keys._find = counted  # type: ignore[assignment]
        began = asyncio.get_running_loop().time()
        for _ in range(40):
            wrong = access.rules.secret_for(key.key_id, os.urandom(ENTROPY_BYTES))[0]
            assert (await look(api, wrong)).status_code == 401
        took = asyncio.get_running_loop().time() - began
        assert looks <= 1 + took / key_book.ROTATED_SECONDS
