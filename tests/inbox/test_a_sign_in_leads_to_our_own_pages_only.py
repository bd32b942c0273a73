"""After the sign-in people are where they wanted to go, and never anywhere else."""

from urllib.parse import parse_qs, quote, urlsplit

import pytest

from controlplane.inbox.links import HOME, way_back
from tests.app import Api, in_process
from tests.figures import Figures
from tests.inbox.person import Person, signed_in
from tests.keys import Keys
from tests.postgres import Database

OURS = [
    "/inbox",
    "/inbox?tab=decided",
    "/inbox?tab=all&q=two%20words&node=n-1&cursor=abc",
    "/inbox/apr_01h",
    "/inbox/executions/run-1",
    "/inbox/feedback/a~b:c",
    "/inbox/deliveries?status=dead",
    "/inbox?q=https://ops.example/",
    "/inbox/signs",
]
ELSEWHERE = [
    "",
    "/",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example",
    "https:evil.example",
    "https:/evil.example/inbox",
    "//evil.example/inbox",
    "evil.example",
    "@evil.example/inbox",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "/inbox/../api/v1/approvals",
    "/inbox/%2e%2e/openapi.json",
    "/inbox/.%2E",
    "/inbox/./x",
    "/inbox//evil.example",
    "/inbox/\\evil.example",
    "/inbox\\",
    "/inbox#fragment",
    "/inboxes",
    "/inbox.evil.example",
    "/inbox@evil.example",
    "/INBOX",
    " /inbox",
    "/inbox ",
    "/inbox\n",
    "/inbox\r\nSet-Cookie: a=b",
    "/inbox\t",
    "\t/inbox",
    "/inbox/\x00",
    "/inbox/é",
    "/inbox/\u2028",
    "/inbox?x=<script>",
    '/inbox?x="',
    "/inbox/sign-in",
    "/inbox/sign-in?next=/inbox",
    "/inbox/sign-out",
    "/inbox/hs_abcdefghjkmn_abcdefghjkmnpqrstvwxyz0123456789",
    "/inbox?key=hs_abcdefghjkmn_abcdefghjkmnpqrstvwxyz0123456789",
    "/api/v1/approvals",
    "/inbox/" + "a" * 2_000,
]


@pytest.mark.parametrize("wanted", OURS)
def test_our_own_pages_are_kept(wanted: str):
    assert way_back(wanted) == wanted


@pytest.mark.parametrize("wanted", ELSEWHERE)
def test_everything_else_is_the_inbox(wanted: str):
    assert way_back(wanted) == HOME


async def test_no_sign_in_leads_elsewhere(guarded: Api, keys: Keys, figures: Figures):
    ann = await signed_in(guarded, keys.review)
    for wanted in ELSEWHERE:
        after = await ann.post("/inbox/sign-in", {"key": keys.review, "next": wanted}, token=None)
        if "\x00" in wanted:
            assert after.status_code == 400
            continue
        assert (after.status_code, after.headers["location"]) == (303, "/inbox"), wanted
        before = await Person(guarded).get(f"/inbox/sign-in?next={quote(wanted, safe='')}")
        if "hs_" in wanted:
            assert before.status_code == 400
            continue
        assert (before.status_code, 'name="next" value="/inbox"' in before.text) == (200, True), wanted
        here = await Person(guarded).get(f"/inbox/sign-in?next={quote(wanted, safe='')}")
        assert "location" not in here.headers
    figures("ways back that are not ours", tried=len(ELSEWHERE))


async def test_people_come_back_to_what_they_wanted(guarded: Api, keys: Keys):
    for wanted in OURS:
        sent = await Person(guarded).get(wanted)
        if sent.status_code == 404:
            continue  # no page, so nothing to come back to
        location = sent.headers["location"]
        back = parse_qs(urlsplit(location).query).get("next", ["/inbox"])[0]
        reply = await Person(guarded).sign_in(keys.review, next=back)
        assert (reply.status_code, reply.headers["location"]) == (303, wanted)


async def test_what_was_sent_without_a_session_leads_back_to_its_page(guarded: Api):
    nobody = Person(guarded)
    sent = await nobody.post("/inbox/apr_01h/decision", {"feedback": "typed"})
    assert sent.headers["location"] == "/inbox/sign-in?next=%2Finbox%2Fapr_01h"
    assert (await nobody.post("/inbox/sign-out", {})).headers["location"] == "/inbox/sign-in"


async def test_everything_works_below_a_path(database: Database, keys: Keys):
    """Behind a proxy that serves it at https://ops.example/holdshort and takes that off again."""
    async with in_process(database, public_url="https://ops.example/holdshort") as api:
        ann = Person(api, origin="https://ops.example")
        assert (await ann.get("/")).headers["location"] == "/holdshort/inbox"
        first = await ann.get("/inbox/apr_01h")
        assert first.headers["location"] == "/holdshort/inbox/sign-in?next=%2Finbox%2Fapr_01h"
        form = (await ann.get("/inbox/sign-in?next=%2Finbox%2Fapr_01h")).text
        assert 'action="/holdshort/inbox/sign-in"' in form
        assert 'href="/holdshort/inbox/static/inbox.css?v=' in form
        reply = await ann.sign_in(keys.review, next="/inbox/apr_01h")
        assert (reply.status_code, reply.headers["location"]) == (303, "/holdshort/inbox/apr_01h")
        assert "; Path=/;" in reply.headers["set-cookie"]
        page = (await ann.get("/inbox")).text
        assert 'data-events="/holdshort/inbox/events"' in page
        assert ' href="/inbox' not in page
        assert (await ann.post("/inbox/sign-out", {})).headers["location"] == "/holdshort/inbox/sign-in"
