"""Every answer says that it is to be shown, guessed, kept and read by nobody else; no origin is ever let in."""

from collections.abc import AsyncIterator

import httpx
import pytest

from controlplane.edge.headers import SAFE
from tests.app import Api, in_process, problem, served
from tests.figures import Figures
from tests.http.walk import GOOD, calls
from tests.postgres import Database

EXPECTED = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
EVIL = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}


@pytest.fixture
async def guarded(database: Database) -> AsyncIterator[Api]:
    """An application that needs a key."""
    async with in_process(database, open_mode=False) as made:
        yield made


def check(reply: httpx.Response) -> None:
    """Each header once, and nothing that lets another origin in or says who serves."""
    for name, value in EXPECTED.items():
        assert reply.headers.get_list(name) == [value], (reply.request.url, name)
    assert not [name for name in reply.headers if name.startswith("access-control-")]
    assert not {"server", "x-powered-by"} & reply.headers.keys()


def test_the_headers_are_those_that_the_specification_names():
    assert {name.decode(): value.decode() for name, value in SAFE} == EXPECTED


async def test_every_route_answers_with_them_when_it_is_done_and_when_it_refuses(api: Api, figures: Figures):
    walked = 0
    for call in calls():
        path = call.at() + ("?from=never" if call.path.endswith("/events") else "")
        for content in (b"{}", None) if call.method == "GET" else (str(GOOD.get(call.name, {})).encode(), b"{}"):
            walked += 1
            headers = {"Content-Type": "application/json"}
            check(await api.client.request(call.method, path, content=content, headers=headers))
    figures("answers with the headers of browsers", walked=walked)


async def test_every_route_refuses_a_caller_without_a_key_with_them(guarded: Api):
    for call in calls():
        check(await guarded.client.request(call.method, call.at()))


async def test_what_is_no_route_answers_with_them(api: Api):
    for reply in (
        await api.client.get("/nowhere"),
        await api.client.get("/openapi.json"),
        await api.client.put("/api/v1/approvals"),
        await api.client.get("/health/live"),
        await api.client.get("/health/live", headers={"Host": "evil.example"}),
        await api.client.get("/health/live", headers=EVIL),
        await api.client.head("/api/v1/approvals"),
    ):
        check(reply)


async def test_no_preflight_is_granted_anywhere(api: Api, guarded: Api):
    asks = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for path in [*{call.at() for call in calls()}, "/", "/nowhere", "/openapi.json"]:
        for headers in (asks, {}):
            for each in (api, guarded):
                reply = await each.client.options(path, headers=headers)
                assert problem(reply) == (403, "preflight_refused")
                check(reply)


async def test_over_a_socket_nothing_is_added_to_them(database: Database):
    async with served(database, workers=False) as api:
        for path in ("/health/live", "/api/v1/approvals", "/nowhere"):
            check(await api.client.get(path))
        async with api.client.stream("GET", "/api/v1/events", params={"from": "now"}) as stream:
            check(stream)
