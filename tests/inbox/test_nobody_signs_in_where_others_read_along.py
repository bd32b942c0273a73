"""Elsewhere than on its own machine people sign in over HTTPS only; who says that it is HTTPS must be believed."""

from typing import Any, NamedTuple

import httpx

from controlplane.domain.proxies import parse
from tests.app import in_process
from tests.inbox.person import taken_cookie
from tests.keys import Keys
from tests.postgres import Database

HERE = "127.0.0.1"
ELSEWHERE = {"Host": "ops.example"}


class Case(NamedTuple):
    """A server's settings, a request's headers, and whether somebody may sign in so."""

    settings: dict[str, Any]
    headers: dict[str, str]
    may: bool


PUBLIC = {"public_url": "https://ops.example"}
PLAIN = {"public_url": "http://ops.example"}
TRUSTING = {"trusted_proxies": parse(HERE)}
STRANGERS = {"trusted_proxies": parse("10.0.0.0/8")}
CASES = {
    "on its machine": Case({}, {"Host": "127.0.0.1:8080"}, True),
    "by its machine's name": Case({}, {"Host": "localhost"}, True),
    "on its machine by IPv6": Case({}, {"Host": "[::1]:8080"}, True),
    "elsewhere in the clear": Case({}, ELSEWHERE, False),
    "a name that only begins like its machine's": Case({}, {"Host": "localhost.evil.example"}, False),
    "a public https URL": Case(PUBLIC, ELSEWHERE, True),
    "a public http URL": Case(PLAIN, ELSEWHERE, False),
    "a proxy that is trusted and took https": Case(TRUSTING, ELSEWHERE | {"X-Forwarded-Proto": "https"}, True),
    "a proxy that is trusted and took http": Case(TRUSTING, ELSEWHERE | {"X-Forwarded-Proto": "http"}, False),
    "a proxy that is trusted and says two things": Case(
        TRUSTING, ELSEWHERE | {"X-Forwarded-Proto": "https, http"}, False
    ),
    "a trusted proxy that took http and names this machine": Case(
        TRUSTING, {"Host": "127.0.0.1", "X-Forwarded-Proto": "http"}, False
    ),
    "a proxy that nobody trusts": Case({}, ELSEWHERE | {"X-Forwarded-Proto": "https"}, False),
    "a proxy that is none of the trusted": Case(STRANGERS, ELSEWHERE | {"X-Forwarded-Proto": "https"}, False),
    "another header of proxies": Case(TRUSTING, ELSEWHERE | {"Forwarded": "proto=https"}, False),
    "a scheme of its own": Case({}, ELSEWHERE | {"X-Forwarded-Scheme": "https"}, False),
}


async def test_a_sign_in_is_private(database: Database, keys: Keys):
    for name, case in CASES.items():
        form, sent = await tried(database, keys, case)
        if case.may:
            assert (form.status_code, "<form" in form.text) == (200, True), name
            assert (sent.status_code, taken_cookie(sent) is not None) == (303, True), name
            assert "; Secure" in sent.headers["set-cookie"]
        else:
            assert (form.status_code, "<form" in form.text) == (403, False), name
            assert "over a connection that others can read" in form.text, name
            assert (sent.status_code, taken_cookie(sent)) == (403, None), name
            assert "over a connection that others can read" in sent.text, name


async def tried(database: Database, keys: Keys, case: Case) -> tuple[httpx.Response, httpx.Response]:
    """The form, and what came of sending it."""
    headers = case.headers | {"Sec-Fetch-Site": "same-origin"}
    async with in_process(database, open_mode=False, **case.settings) as api:
        form = await api.client.get("/inbox/sign-in", headers=case.headers)
        return form, await api.client.post("/inbox/sign-in", data={"key": keys.review}, headers=headers)


async def test_history_has_the_address_that_a_trusted_proxy_forwards(database: Database, keys: Keys, sql: Any):
    headers = {"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": "203.0.113.9"}
    for settings in (TRUSTING, STRANGERS):
        async with in_process(database, open_mode=False, **settings) as api:
            sent = await api.client.post("/inbox/sign-in", data={"key": keys.review}, headers=headers)
            assert sent.status_code == 303
    rows = await sql.fetch("SELECT actor_address FROM history WHERE type = 'session.opened' ORDER BY seq")
    assert [row["actor_address"] for row in rows] == ["203.0.113.9", HERE]
