"""Whatever goes wrong, a person reads a page that says what happened and what to do, and a script a document."""

import httpx
from litestar import get

from controlplane.domain.access import Access
from tests.app import Api, problem
from tests.http.test_an_absent_database_is_503 import through_a_proxy
from tests.inbox.person import Person, signed_in
from tests.keys import Keys
from tests.postgres import Database

PAGE = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "content-type": "text/html; charset=utf-8",
}
SCRIPT = {"Sec-Fetch-Dest": "empty"}


def check(reply: httpx.Response, status: int, *words: str) -> None:
    """It is a whole page of ours with every header of one."""
    assert reply.status_code == status, reply.text
    for name, value in PAGE.items():
        assert reply.headers.get_list(name) == [value], name
    assert reply.text.startswith("<!doctype html>")
    assert reply.text.rstrip().endswith("</html>")
    assert "Traceback" not in reply.text
    for each in words:
        assert each in reply.text
    assert reply.headers["x-request-id"]


async def test_what_is_not_there_is_a_page(guarded: Api, ann: Person):
    for path in ("/inbox/apr_0", "/inbox/no/such/page", "/inbox/static/none.css", "/inbox/static/..%2finbox.css"):
        check(await ann.get(path), 404, "There is nothing here")
        assert (problem(await ann.get(path, **SCRIPT)))[0] == 404
    check(await Person(guarded).get("/inbox/no/such/page"), 404)
    outside = await ann.get("/inboxes")
    assert problem(outside) == (404, "not_found")


async def test_another_method_is_a_page_that_names_the_right_one(guarded: Api, ann: Person):
    for method, path, right in (("PUT", "/inbox", "GET"), ("GET", "/inbox/sign-out", "POST")):
        reply = await guarded.client.request(method, path, headers=ann._headers())
        check(reply, 405)
        assert right in reply.headers["allow"]


async def test_every_page_has_the_headers_of_one(guarded: Api, ann: Person):
    check(await ann.get("/inbox"), 200)
    check(await Person(guarded).get("/inbox/sign-in"), 200)
    check(await ann.post("/inbox/sign-out", {}, token=None), 403)
    check(await ann.post("/inbox/sign-out", b"a=%zz"), 400)
    check(await ann.post("/inbox/sign-out", {"a": "x" * 20_000}), 413)
    check(await ann.post("/inbox/sign-out", {}, **{"Content-Type": "text/plain"}), 415)
    check(await Person(guarded).post("/inbox/sign-in", {"key": "wrong"}, token=None), 401)


async def test_a_fault_of_ours_shows_nothing_of_itself(guarded: Api, ann: Person):
    @get("/inbox/deep/broken", opt={"inbox": True, "access": Access.INBOX})
    async def broken() -> str:
        raise RuntimeError("what only the log may know")

    guarded.app.register(broken)
    reply = await ann.get("/inbox/deep/broken")
    check(reply, 500, "Something went wrong", reply.headers["x-request-id"])
    assert "only the log" not in reply.text
    assert problem(await ann.get("/inbox/deep/broken", **SCRIPT)) == (500, "internal_error")


async def test_without_a_database_a_page_says_that_nothing_was_done(database: Database, keys: Keys):
    async with through_a_proxy(database) as (api, proxy):
        ann = await signed_in(api, keys.review)
        api.runtime.sessions._entries.clear()
        await proxy.cut()
        page = await ann.get("/inbox/apr_0?x=1")
        check(page, 503, "nothing was changed and nothing was decided", 'href="/inbox/apr_0?x=1"')
        assert page.headers["retry-after"] == "1"
        sent = await ann.post("/inbox/apr_0/decision", {"verdict": "approved", "confirmed": "approved"})
        check(sent, 503, "nothing was changed and nothing was decided")
        assert problem(await ann.get("/inbox/settled", **SCRIPT)) == (503, "database_unavailable")
        check(await Person(api).post("/inbox/sign-in", {"key": keys.admin}, token=None), 503)
        check(await Person(api).get("/inbox/sign-in"), 200)


async def test_static_files_are_kept_by_their_version(guarded: Api, ann: Person):
    page = (await ann.get("/inbox")).text
    start = page.index('href="/inbox/static/inbox.css?v=') + len('href="')
    path = page[start : page.index('"', start)]
    nobody = Person(guarded)
    first = await nobody.get(path)
    assert (first.status_code, first.headers["content-type"]) == (200, "text/css; charset=utf-8")
    assert "immutable" in first.headers["cache-control"]
    assert first.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in first.headers
    bare = await nobody.get(path.partition("?")[0])
    assert bare.headers["cache-control"] == "no-cache"
    again = await nobody.get(path.partition("?")[0], **{"If-None-Match": bare.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for wrong in (
        "/inbox/static/",
        "/inbox/static/base.html",
        "/inbox/static/%2e%2e%2f__init__.py",
        "/inbox/static/%00",
    ):
        assert (await nobody.get(wrong)).status_code == 404, wrong
