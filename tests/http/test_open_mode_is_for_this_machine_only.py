"""Without keys: only programs of this machine get in, by no detour of a browser or a proxy, and only until a key is."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from controlplane.domain import signatures
from controlplane.domain.keys import ENTROPY_BYTES
from controlplane.services import access
from controlplane.services.access import Wanted
from tests.app import SECRET, Api, in_process, problem, served, until
from tests.figures import Figures
from tests.http.test_only_the_right_callers_get_in import under, walk
from tests.keys import SETUP, sent
from tests.postgres import Database

EVIL = "http://evil.example"
REBOUND = (
    "evil.example",
    "evil.example:{port}",
    "localhost.evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "127.0.0.1",
    "localhost:{other}",
    "[::1]:{other}",
    "127.0.0.1:0{port}",
    "127.0.0.1:{port}:{port}",
    "127.0.0.1:{port}@evil.example",
    "evil.example@127.0.0.1:{port}",
    "127.0.0.2:{port}",
    "127.1:{port}",
    "2130706433:{port}",
    "0x7f000001:{port}",
    "0.0.0.0:{port}",
    "[::]:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "[0:0:0:0:0:0:0:1]:{port}",
    "localhost.:{port}",
    "ip6-localhost:{port}",
    "localhost,evil.example:{port}",
    "",
)
PROXIED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Anything", "Via")
FOREIGN = {
    "another site": {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
    "an older browser": {"Origin": EVIL},
    "a sandboxed frame": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "a page without its Origin": {"Origin": "null"},
    "another port of this machine": {"Origin": "http://127.0.0.1:{other}", "Sec-Fetch-Site": "same-site"},
    "no port": {"Origin": "http://127.0.0.1"},
    "another name of this machine": {"Origin": "http://localhost:{port}"},
    "another scheme": {"Origin": "https://127.0.0.1:{port}"},
    "a longer name": {"Origin": "http://127.0.0.1:{port}.evil.example"},
    "no Origin": {"Sec-Fetch-Site": "cross-site"},
    "a subdomain": {"Sec-Fetch-Site": "same-site"},
    "a word that nobody knows": {"Sec-Fetch-Site": "same-galaxy"},
    "its own Origin, sent from elsewhere": {"Origin": "http://127.0.0.1:{port}", "Sec-Fetch-Site": "cross-site"},
    "a form that no page has": {"Sec-Fetch-Site": "none"},
    "nothing": {"Origin": ""},
}


@pytest.fixture
async def here(database: Database) -> AsyncIterator[Api]:
    """An application on a loopback port, as `dev` serves it."""
    async with served(database) as made:
        yield made


def at(api: Api, text: str) -> str:
    return text.format(port=api.port, other=api.port + 1)


async def make_key(api: Api, scope: str) -> str:
    async with api.runtime.transaction() as conn:
        wanted = Wanted(name=scope, scopes=(scope,))
        return (await access.create(conn, wanted, entropy=os.urandom(ENTROPY_BYTES), actor=SETUP))[1]


def every_call() -> list[tuple[str, str]]:
    """A method and path of every route there is, and some that there are not."""
    routed = [(method, under(path)) for method, path, _ in walk()]
    others = ["/health/live", "/health/ready", "/openapi.json", "/openapi", "/", "/metrics", "/inbox", "/nothing"]
    return [*routed, *(("GET", path) for path in others), ("PUT", "/")]


async def test_it_answers_under_the_names_of_this_machine(here: Api):
    for host in ("localhost:{port}", "LocalHost:{port}", "127.0.0.1:{port}", "[::1]:{port}"):
        reply = await here.client.get("/api/v1/executions", headers={"Host": at(here, host)})
        assert reply.status_code == 200, (host, reply.text)


async def test_a_name_that_was_made_to_lead_here_is_refused_on_every_path(here: Api, figures: Figures):
    calls = every_call()
    for method, path in calls:
        rebound = {"Host": at(here, "evil.example:{port}")}
        assert problem(await here.client.request(method, path, headers=rebound)) == (421, "wrong_host"), path
    for host in REBOUND:
        reply = await here.client.get("/api/v1/executions", headers={"Host": at(here, host)})
        assert problem(reply) == (421, "wrong_host"), host
        assert reply.headers["x-request-id"] == reply.json()["request_id"]
    figures("open mode", paths_refused_under_another_name=len(calls), names_refused=len(REBOUND))


async def test_a_browser_that_another_page_sends_is_refused_on_every_path(here: Api):
    for method, path in every_call():
        reply = await here.client.request(method, path, headers=FOREIGN["another site"])
        assert problem(reply) == (403, "cross_origin"), path


async def test_no_page_approves_by_a_form_or_a_script(here: Api, figures: Figures):
    approval = await here.asked()
    path = f"/api/v1/approvals/{approval}/decision"
    for where, headers in FOREIGN.items():
        told = {name: at(here, value) for name, value in headers.items()}
        for content_type in ("text/plain", "application/x-www-form-urlencoded", "application/json"):
            told["Content-Type"] = content_type
            reply = await here.client.post(path, content=b'{"decision": "approved"}', headers=told)
            assert problem(reply) == (403, "cross_origin"), where
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    preflight = await here.client.options(path, headers=FOREIGN["another site"] | asks)
    assert preflight.status_code == 403
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    assert (await here.get(f"/approvals/{approval}")).json()["status"] == "pending"
    figures("open mode", pages_refused=len(FOREIGN))


async def test_a_page_of_ours_and_a_person_who_types_the_address_get_in(here: Api):
    approval = await here.asked()
    typed = await here.client.get(f"/api/v1/approvals/{approval}", headers={"Sec-Fetch-Site": "none"})
    assert typed.json()["status"] == "pending"
    for host in ("localhost:{port}", "127.0.0.1:{port}"):
        ours = {"Host": at(here, host), "Origin": f"http://{at(here, host)}", "Sec-Fetch-Site": "same-origin"}
        reply = await here.client.post(
            f"/api/v1/approvals/{approval}/decision", json={"decision": "approved"}, headers=ours
        )
        assert (reply.status_code, reply.json()["decision"]) == (200, "approved"), reply.text


@pytest.mark.parametrize("name", [*PROXIED, *(name.lower() for name in PROXIED)])
async def test_what_came_through_a_proxy_is_refused(shared_api: Api, name: str):
    for path in ("/health/ready", "/api/v1/executions"):
        reply = await shared_api.client.get(path, headers={name: "127.0.0.1"})
        assert problem(reply) == (403, "forwarded_request")


async def test_a_header_that_was_sent_twice_names_no_place(shared_api: Api):
    for twice in ("127.0.0.1", "evil.example"):
        for pair in ([("Host", "127.0.0.1"), ("Host", twice)], [("Host", twice), ("Host", "127.0.0.1")]):
            assert problem(await shared_api.client.get("/health/live", headers=pair)) == (421, "wrong_host")
    origins = [("Origin", "http://127.0.0.1"), ("Origin", "http://127.0.0.1")]
    assert problem(await shared_api.client.get("/health/live", headers=origins)) == (403, "cross_origin")
    sites = [("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "cross-site")]
    assert problem(await shared_api.client.get("/health/live", headers=sites)) == (403, "cross_origin")


async def test_a_request_without_a_host_is_refused(here: Api):
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    writer.write(b"GET /health/live HTTP/1.0\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 421 ")
    writer.close()
    await writer.wait_closed()


async def test_a_signed_webhook_takes_no_detour_either(here: Api):
    approval = await here.asked()
    raw = json.dumps({"requestId": "q-1", "decision": "approved"}).encode()
    signed = {"X-Webhook-Signature": signatures.sign_hex(SECRET, raw)}
    for detour in ({"Host": "tunnel.example"}, {"X-Forwarded-For": "192.0.2.1"}):
        reply = await here.client.post("/api/v1/webhooks/approval-response", content=raw, headers=signed | detour)
        assert reply.status_code in {421, 403}
    assert (await here.get(f"/approvals/{approval}")).json()["status"] == "pending"
    assert (await here.webhook(raw)).json()["status"] == "processed"


async def test_an_application_that_does_not_know_its_port_answers_nobody(database: Database):
    async with in_process(database) as api:
        bare = httpx.AsyncClient(transport=api.client._transport, base_url="http://127.0.0.1:8080")
        assert problem(await bare.get("/health/live")) == (421, "wrong_host")


async def test_the_first_key_closes_what_stood_open_and_ends_what_was_held(here: Api, figures: Figures):
    approval = await here.asked()
    async with here.client.stream("GET", "/api/v1/events") as stream:
        assert stream.status_code == 200
        lines = stream.aiter_lines()
        await anext(lines)
        query = {"wait": 60}
        held = asyncio.create_task(here.client.get("/api/v1/executions/run-1/approval-status", params=query))
        await until(lambda: len(here.runtime.waits))
        begun = asyncio.get_running_loop().time()
        key = await make_key(here, "review")
        async with asyncio.timeout(5):
            assert [line async for line in lines if line.startswith("nothing")] == []
        assert problem(await asyncio.wait_for(held, 5)) == (401, "not_authenticated")
    took = asyncio.get_running_loop().time() - begun
    body: dict[str, Any] = {"json": {"decision": "approved"}}
    path = f"/api/v1/approvals/{approval}/decision"
    assert problem(await here.client.post(path, **body)) == (401, "not_authenticated")
    proxied = {"Host": "holdshort.example", "X-Forwarded-For": "192.0.2.1", "Origin": EVIL} | sent(key)
    assert (await here.client.post(path, **body, headers=proxied)).status_code == 200
    figures("open mode", seconds_until_the_first_key_closed_it=round(took, 2))


async def test_it_never_opens_again(api: Api, sql: Any):
    assert api.runtime.open
    await make_key(api, "admin")
    await api.runtime.settle_access()
    await sql.execute("TRUNCATE api_keys CASCADE")
    await api.runtime.settle_access()
    assert problem(await api.get("/executions")) == (401, "not_authenticated")


async def test_a_key_that_was_revoked_has_existed(database: Database, api: Api, sql: Any):
    await make_key(api, "admin")
    await sql.execute("UPDATE api_keys SET revoked_at = now()")
    async with in_process(database) as again:
        assert problem(await again.get("/executions")) == (401, "not_authenticated")


async def test_nothing_stands_open_that_was_not_started_for_it(database: Database):
    async with in_process(database, open_mode=False) as api:
        for method, path in every_call():
            reply = await api.client.request(method, path)
            led_to_sign_in = (reply.status_code, path) in {(303, "/"), (303, "/inbox")} and not reply.content
            known = reply.status_code in {401, 404, 405} or led_to_sign_in or path.startswith("/health")
            assert known, (path, reply.text)
        assert problem(await api.get("/executions")) == (401, "not_authenticated")
