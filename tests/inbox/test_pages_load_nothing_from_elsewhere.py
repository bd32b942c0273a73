"""Every page in every state: well formed, its own files only, below the public URL's path, and safe by its headers."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from controlplane.inbox.static_files import FILES
from tests.app import Api, in_process
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, opened
from tests.inbox.person import Person
from tests.inbox.reading import Page
from tests.postgres import Server, clone

pytestmark = pytest.mark.asyncio(loop_scope="module")

LISTS = [
    "/inbox",
    "/inbox?tab=decided",
    "/inbox?tab=expired",
    "/inbox?tab=all",
    "/inbox?q=zzz",
    "/inbox/executions",
    "/inbox/executions?status=waiting",
    "/inbox/executions?status=failed",
    "/inbox/executions/run-1",
    "/inbox/executions/nothing",
    "/inbox/deliveries",
    "/inbox/deliveries?status=dead",
    "/inbox/nodes",
    "/inbox/status",
    "/inbox/nonsense",
]
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def below(postgres_server: Server, template_database: str) -> AsyncIterator[Api]:
    """An application that people reach below a path of another host."""
    with clone(postgres_server, template_database) as database:
        async with in_process(database, public_url="https://people.example/hold/short/") as made:
            yield made


async def pages_of(api: Api) -> list[tuple[str, str]]:
    """Pages in every state, by what they are."""
    person = Person(api)
    waiting = await ask(
        api, title="Send it?", payload={"before": 1, "after": 2}, approval_request_url="https://a.example/"
    )
    decided = await ask(api, callback_url="http://127.0.0.1:9/hook", description="See https://a.example/")
    armed = await (await opened(api, waiting, person)).press("approved")
    refused = await (await opened(api, waiting, person)).decide("request_changes")
    changed = await (await opened(api, waiting, person)).decide("approved", digest="0")
    await (await opened(api, decided, person)).decide("approved", feedback="Fine.")
    late = await (await opened(api, waiting, person)).person.post(f"/inbox/{decided}/decision", {"verdict": "rejected"})
    found = [(path, (await person.get(path)).text) for path in [*LISTS, f"/inbox/{waiting}", f"/inbox/{decided}"]]
    return [*found, ("armed", armed.text), ("refused", refused.text), ("changed", changed.text), ("late", late.text)]


async def test_nothing_is_loaded_from_elsewhere_and_nothing_is_inline(api: Api):
    for name, text in await pages_of(api):
        page = Page(text)
        assert page.faults == [], name
        for tag, address in page.leads():
            if not address.startswith("/"):
                assert address.startswith("#") or (
                    tag.name == "a" and tag.attributes["rel"] == "noopener noreferrer"
                ), name
        assert not page.has("style"), name
        assert not page.named("style"), name
        assert not re.search(r"<script(?![^>]*src=)", text), name
        assert page.title.endswith("· Holdshort"), name


async def test_ids_are_unique_and_controls_have_labels(api: Api):
    for name, text in await pages_of(api):
        page = Page(text)
        ids = [tag.attributes["id"] for tag in page.has("id")]
        assert sorted(ids) == sorted(set(ids)), name
        named = {tag.attributes.get("for") for tag in page.named("label")}
        for tag in page.named("textarea"):
            assert tag.attributes["id"] in named, name
        assert len(page.named("h1")) == 1, name
        assert len(page.named("main")) == 1, name


async def test_links_lead_below_the_public_urls_path(below: Api):
    seen = 0
    for name, text in await pages_of(below):
        page = Page(text)
        for tag, address in page.leads():
            if address.startswith("/"):
                seen += 1
                assert address.startswith("/hold/short/inbox"), (name, tag)
        body = page.named("body")[0].attributes
        assert body["data-home"] == "/hold/short/inbox"
        assert body["data-events"] == "/hold/short/inbox/events"
    assert seen > 200
    approval = await ask(below)
    done = await (await opened(below, approval)).decide("approved")
    assert done.headers["location"] == f"/hold/short/inbox/{approval}"


async def test_pages_are_kept_by_nobody_and_framed_by_nobody(api: Api):
    for path in LISTS:
        reply = await Person(api).get(path)
        assert reply.headers["content-security-policy"] == CSP, path
        assert reply.headers["cache-control"] == "no-store", path
        assert reply.headers["content-type"] == "text/html; charset=utf-8", path


async def test_own_files_are_served_and_kept_under_their_version(api: Api):
    assert {"inbox.css", "favicon.svg"} <= FILES.keys()
    for name, file in FILES.items():
        path = f"/inbox/static/{name}"
        plain = await api.client.get(path)
        assert (plain.status_code, plain.content) == (200, file.content)
        assert plain.headers["cache-control"] == "no-cache"
        again = await api.client.get(path, headers={"If-None-Match": plain.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        kept = await api.client.get(path, params={"v": file.version})
        assert "immutable" in kept.headers["cache-control"]
    for name in ("nothing.css", "..%2f__init__.py", "%2e%2e", "inbox.css%00"):
        assert (await api.client.get(f"/inbox/static/{name}")).status_code == 404


async def test_own_files_name_no_other_host():
    for name, file in FILES.items():
        text = file.content.decode().replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|url\(|//[a-z]+\.", text), name
