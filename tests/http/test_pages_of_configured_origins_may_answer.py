"""Pages of origins that are configured may list, watch and answer questions with a key; nothing else, and no others."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from controlplane.edge.cors import METHODS
from controlplane.http.routes import TABLE
from tests.app import Api, in_process, problem
from tests.http.walk import calls
from tests.postgres import Database, Server, clone

pytestmark = pytest.mark.asyncio(loop_scope="module")

DESK = "https://desk.example"
OTHERS = ["https://evil.example", "http://desk.example", "https://desk.example:8443", "https://x.desk.example", "null"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(postgres_server: Server, template_database: str) -> AsyncIterator[Api]:
    """One application for the whole file: nothing here has an effect."""
    with clone(postgres_server, template_database) as database:
        async with in_process(database, open_mode=False, cors_origins=(DESK, "http://localhost:5173")) as made:
            yield made


async def preflight(api: Api, path: str, origin: str, method: str) -> httpx.Response:
    asks = {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": "x-api-key"}
    return await api.client.options(path, headers=asks)


def granted(reply: httpx.Response) -> list[str]:
    return [name for name in reply.headers if name.startswith("access-control-")]


async def test_the_paths_are_routes_of_the_table():
    paths = {
        (path, method.encode())
        for each in TABLE.values()
        for h in each
        for path in h.paths
        for method in h.http_methods
    }
    assert {*METHODS.items()} <= paths


async def test_a_configured_origin_is_granted_where_people_answer(api: Api):
    for path, method in METHODS.items():
        reply = await preflight(api, path, DESK, method.decode())
        assert reply.status_code == 204
        assert reply.content == b""
        assert reply.headers["access-control-allow-origin"] == DESK
        assert reply.headers["access-control-allow-methods"] == method.decode()
        assert {"x-api-key", "content-type"} <= {*reply.headers["access-control-allow-headers"].split(", ")}
        assert "access-control-allow-credentials" not in reply.headers
        assert reply.headers["vary"] == "Origin"
        wrong = await preflight(api, path, DESK, "DELETE")
        assert problem(wrong) == (403, "preflight_refused")
        assert granted(wrong) == []


async def test_its_pages_may_read_answers_and_refusals(api: Api):
    for path, method in METHODS.items():
        reply = await api.client.request(method.decode(), path, headers={"Origin": DESK})
        assert problem(reply) == (401, "not_authenticated")
        assert reply.headers["access-control-allow-origin"] == DESK
        assert reply.headers["vary"] == "Origin"
        assert "access-control-allow-credentials" not in reply.headers


async def test_no_other_origin_is_granted_anything(api: Api):
    for path, method in METHODS.items():
        for origin in OTHERS:
            reply = await preflight(api, path, origin, method.decode())
            assert problem(reply) == (403, "preflight_refused")
            asked = await api.client.request(method.decode(), path, headers={"Origin": origin})
            assert (granted(reply), granted(asked)) == ([], [])
        twice = [("Origin", DESK), ("Origin", OTHERS[0]), ("Access-Control-Request-Method", method.decode())]
        assert granted(await api.client.options(path, headers=twice)) == []


async def test_nothing_else_is_granted_to_a_configured_origin(api: Api):
    elsewhere = {call.at() for call in calls()} - METHODS.keys()
    for path in [*elsewhere, "/inbox", "/inbox/sign-in", "/", "/openapi.json", "/api/human-feedback/submit/"]:
        for method in ("GET", "POST"):
            reply = await preflight(api, path, DESK, method)
            assert problem(reply) == (403, "preflight_refused"), path
            assert granted(reply) == []
        assert granted(await api.client.get(path + "?from=never", headers={"Origin": DESK})) == []


async def test_no_cookie_is_taken_for_a_key(api: Api):
    for path, method in METHODS.items():
        headers = {"Origin": DESK, "Cookie": "__Host-holdshort=x"}
        assert problem(await api.client.request(method.decode(), path, headers=headers))[0] == 401


async def test_where_nobody_needs_a_key_no_origin_is_granted_anything(database: Database):
    async with in_process(database, cors_origins=(DESK,)) as api:
        for path, method in METHODS.items():
            assert problem(await preflight(api, path, DESK, method.decode())) == (403, "preflight_refused")
            reply = await api.client.request(method.decode(), path, headers={"Origin": DESK})
            assert problem(reply) == (403, "cross_origin")
            assert granted(reply) == []
