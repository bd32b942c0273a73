"""Every page, without a session, with another's form token, and with each kind of key: the table, and nothing more."""

import re
from itertools import product
from typing import Any, NamedTuple

import httpx
from litestar import get

from controlplane.app import create_app
from controlplane.domain.access import Access
from controlplane.inbox.routes import TABLE
from controlplane.settings import Settings
from tests.app import Api, problem
from tests.figures import Figures
from tests.inbox.person import COOKIE, Person, signed_in
from tests.keys import Keys

NAMES = {
    "approval_id": "apr_0",
    "unique_id": "q-1",
    "name": "inbox.css",
    "execution_id": "run-1",
    "delivery_id": "dlv_0",
}
# As the specification's table says it, not as the code does.
ALLOWED = {
    Access.INBOX: {"review", "admin", "operator"},
    Access.REVIEW: {"review", "operator"},
    Access.ADMIN: {"admin", "operator"},
}
PEOPLE = ("review", "admin", "operator")
_PLACE = re.compile(r"\{(\w+):str\}")


class Page(NamedTuple):
    """A method and a path of the inbox, whom it is for, and whether only the script asks it."""

    method: str
    path: str
    purpose: Access
    by_script: bool


def pages() -> list[Page]:
    """Every page; ids are those of nothing."""
    return [
        Page(method, _PLACE.sub(lambda found: NAMES[found[1]], path), purpose, bool(handler.opt.get("script")))
        for purpose, handlers in TABLE.items()
        for handler in handlers
        for path in sorted(handler.paths)
        for method in sorted(handler.http_methods - {"OPTIONS"})
    ]


PRIVATE = [page for page in pages() if page.purpose is not Access.PUBLIC]


async def ask(person: Person, page: Page, **headers: str) -> httpx.Response:
    """Ask for a page; of a stream only its head, as it has no end."""
    if page.method != "GET":
        return await person.post(page.path, {}, **headers)
    if page.path != "/inbox/events":
        return await person.get(page.path, **headers)
    return await head_of_stream(person, page.path, **headers)


async def head_of_stream(person: Person, path: str, **headers: str) -> httpx.Response:
    person.api.runtime.stopping = True  # a stream that begins while a server stops ends at once
    try:
        return await person.get(path, **headers)
    finally:
        person.api.runtime.stopping = False


def sends_to_sign_in(reply: httpx.Response) -> bool:
    location = reply.headers.get("location", "")
    return reply.status_code == 303 and (location == "/inbox/sign-in" or location.startswith("/inbox/sign-in?next="))


def test_every_page_stands_in_the_table_and_nothing_else_lies_there():
    app = create_app(Settings())
    below = [route for route in app.routes if f"{route.path}/".startswith("/inbox/")]
    routed = [handler for route in below for handler in getattr(route, "route_handlers", [])]
    asked = [h for h in routed if not h.fn.__module__.startswith("litestar.")]
    known = {handler.handler_name for handlers in TABLE.values() for handler in handlers}
    assert {handler.handler_name for handler in asked} == known - {"root"}
    assert all(handler.opt.get("access") and handler.opt.get("inbox") for handler in asked)
    assert {page.purpose for page in pages()} <= {*ALLOWED, Access.PUBLIC}


async def test_nobody_gets_in_without_a_session(guarded: Api, keys: Keys, figures: Figures):
    stranger = Person(guarded)
    cookies = {
        "none": None,
        "empty": "",
        "invented": "A" * 43,
        "a key": keys.review,
        "too long": "A" * 5000,
        "no text": "é" * 43,
    }
    for page in PRIVATE:
        for name, cookie in cookies.items():
            stranger.cookie = None if cookie is None else cookie.encode().decode("latin-1")
            reply = await ask(stranger, page)
            if page.by_script:
                assert problem(reply) == (401, "not_authenticated"), (page, name)
            else:
                assert sends_to_sign_in(reply), (page, name, reply.status_code, reply.text)
            as_script = await ask(stranger, page, **{"Sec-Fetch-Dest": "empty"})
            assert problem(as_script) == (401, "not_authenticated"), (page, name)
    figures("pages without a session", pages=len(PRIVATE), cookies=len(cookies))
    assert len(PRIVATE) >= 8


async def test_an_api_key_in_a_header_opens_no_page(guarded: Api, keys: Keys):
    stranger = Person(guarded)
    for page in PRIVATE:
        for key in keys:
            reply = await ask(stranger, page, **{"X-API-Key": key})
            assert reply.status_code == (401 if page.by_script else 303), page


async def test_each_page_is_for_its_scopes(guarded: Api, keys: Keys):
    people = {name: await signed_in(guarded, getattr(keys, name)) for name in PEOPLE}
    for page in PRIVATE:
        for name, person in people.items():
            if page.path == "/inbox/sign-out":
                continue
            reply = await ask(person, page)
            if name in ALLOWED[page.purpose]:
                assert reply.status_code not in {303, 401, 403, 500}, (name, page, reply.text)
            elif page.by_script:
                assert problem(reply) == (403, "not_allowed"), (name, page)
            else:
                assert reply.status_code == 403, (name, page)
                assert reply.headers["content-type"].startswith("text/html"), (name, page)
                assert "may not do this" in reply.text


async def test_another_persons_token_sends_no_form(guarded: Api, keys: Keys, figures: Figures):
    ann, bob = await signed_in(guarded, keys.operator), await signed_in(guarded, keys.operator)
    tokens = {"another's": bob.token, "none": None, "empty": "", "the cookie": ann.cookie, "cut": ann.token[:-1]}
    tokens |= {"longer": f"{ann.token}A", "no text": "\udcff".encode(errors="surrogateescape").decode("latin-1")}
    forms = [page for page in PRIVATE if page.method == "POST"]
    for page in forms:
        for name, token in tokens.items():
            reply = await ann.post(page.path, {}, token=token)
            assert reply.status_code == 403, (page, name)
            assert "another session" in reply.text, (page, name)
            assert problem(await ann.post(page.path, {}, token=token, **{"Sec-Fetch-Dest": "empty"})) == (
                403,
                "form_stale",
            )
    assert (await ann.get("/inbox")).status_code == 200
    figures("forms with another token", forms=len(forms), tokens=len(tokens))
    assert len(forms) >= 3


async def test_a_page_that_nobody_gave_a_purpose_is_shown_to_nobody(guarded: Api, keys: Keys):
    @get("/inbox/deep/forgotten", opt={"inbox": True})
    async def forgotten() -> str:
        return "seen"

    @get("/inbox/deep/lost")
    async def lost() -> str:
        return "seen"

    guarded.app.register(forgotten)
    guarded.app.register(lost)
    operator = await signed_in(guarded, keys.operator)
    assert (await operator.get("/inbox/deep/forgotten")).status_code == 403
    assert sends_to_sign_in(await Person(guarded).get("/inbox/deep/forgotten"))
    for person in (operator, Person(guarded)):
        assert "seen" not in (await person.get("/inbox/deep/lost")).text


async def test_a_session_is_no_key_of_the_api(guarded: Api, ann: Person):
    for path in ("/api/v1/approvals", "/api/v1/executions", "/api/v1/events"):
        assert problem(await ann.get(path)) == (401, "not_authenticated")
    assert problem(await ann.post("/api/v1/approvals/apr_0/decision", {})) == (401, "not_authenticated")


async def test_two_cookies_that_differ_are_none(guarded: Api, keys: Keys, ann: Person):
    other = await signed_in(guarded, keys.admin)
    both = f"{COOKIE}={ann.cookie}; {COOKIE}={other.cookie}"
    assert sends_to_sign_in(await ann.get("/inbox", Cookie=both))
    same = f"{COOKIE}={ann.cookie}; other=1; {COOKIE}={ann.cookie}"
    assert (await ann.get("/inbox", Cookie=same)).status_code == 200


async def test_looking_changes_nothing(guarded: Api, keys: Keys, ann: Person, sql: Any):
    """What scanners of mail and previews of links do, twenty times, with and without a session."""
    approval = await asked(guarded, keys)
    before = await sql.fetchval("SELECT count(*) FROM history")
    paths = [f"/inbox/{approval}", f"/inbox/{approval}/decision", "/inbox/sign-out", "/inbox/sign-in", "/inbox"]
    for person, method, path in product((ann, Person(guarded)), ("GET", "HEAD", "OPTIONS"), paths):
        for _ in range(20 if path.endswith("decision") else 2):
            reply = await guarded.client.request(
                method, f"{path}?verdict=approved&confirmed=approved&csrf={ann.token}", headers=person._headers()
            )
            assert reply.status_code < 500
    assert (await ann.get("/inbox")).status_code == 200
    assert await sql.fetchval("SELECT count(*) FROM history") == before
    assert await sql.fetchval("SELECT status FROM approvals WHERE approval_id = $1", approval) == "pending"


async def asked(api: Api, keys: Keys) -> str:
    """An approval that waits."""
    as_agent = {"X-API-Key": keys.agent}
    body = {"node_id": "node-1", "execution_id": "run-1"}
    assert (await api.client.post("/api/v1/executions", json=body, headers=as_agent)).status_code == 201
    asking = await api.client.post(
        "/api/v1/executions/run-1/request-approval", json={"approval_request_id": "q"}, headers=as_agent
    )
    return str(asking.json()["approval_id"])
