"""Whatever somebody else wrote stands on a page as text, in every place: readable, and never markup, link or order."""

import re
from typing import Any

import pytest

from controlplane.inbox.present_text import has_hidden
from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, ask_again, opened
from tests.inbox.person import Person
from tests.inbox.reading import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(1)</script></textarea></title></bdi>\"'><svg/onload=a()> {{ 7*7 }} "
    "{% raw %} javascript:alert(1) &lt;b&gt; \u202egnp.exe\u202c zero\u200bwidth \u2066iso\u2069"
)
# As much of it as a name may have.
NAME = HOSTILE[:128]
LONG = ("<b>" + "word " * 10 + "\u202e") * 300


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


def check(text: str, *, least: int = 1) -> Page:
    """A page that holds the hostile text, and is no other page for it."""
    page = Page(text)
    assert page.faults == []
    assert not {"img", "iframe", "object", "embed", "style", "base"} & {tag.name for tag in page.tags}
    assert all(tag.attributes.get("src", "").startswith("/inbox/static/") for tag in page.named("script"))
    assert not [name for tag in page.tags for name in tag.attributes if name.startswith("on") or name == "style"]
    assert not re.search(r"javascript:|data:", " ".join(address for _, address in page.leads()), re.IGNORECASE)
    assert page.text.count("<script>alert(1)</script>") + page.title.count("<script>") >= least
    assert not has_hidden(page.text + page.title)
    return page


async def test_in_an_approval_and_its_row(api: Api):
    approval = await ask(
        api,
        title=HOSTILE[:200],
        description=HOSTILE + ' https://evil.example/<script>?a="b',
        payload={
            HOSTILE: [HOSTILE, {"before": HOSTILE, "after": f"{HOSTILE}!"}],
            "n": {"old": "a\nb\nc", "new": f"a\n{HOSTILE}\nc"},
        },
        approval_request_url="https://evil.example/?a=%3Cscript%3E",
    )
    asked = (await api.get(f"/approvals/{approval}")).json()
    await api.post(f"/executions/{asked['execution_id']}/notes", {"message": HOSTILE, "tags": [HOSTILE[:100]]})
    page = check((await Person(api).get(f"/inbox/{approval}")).text, least=8)
    assert "7*7" in page.words
    assert "U+202E" in page.words
    outside = [tag for tag, address in page.leads() if address.startswith(("http:", "https:", "//"))]
    assert {tag.name for tag in outside} == {"a"}
    assert {tag.attributes["rel"] for tag in outside} == {"noopener noreferrer"}
    check((await Person(api).get("/inbox")).text)
    check((await Person(api).get(f"/inbox/executions/{asked['execution_id']}")).text, least=2)


async def test_in_what_was_typed_and_what_came_of_it(api: Api):
    approval = await ask(api, payload={"a": 1})
    desk = await opened(api, approval)
    for reply in (
        await desk.press("rejected", feedback=HOSTILE),
        await desk.decide("rejected", feedback=HOSTILE, digest=""),
    ):
        page = Page(reply.text)
        assert page.faults == []
        # A person's own words come back as they are: they are still in the person's field.
        assert page.areas["feedback"] == HOSTILE
    assert (await desk.decide("request_changes", feedback=HOSTILE)).status_code == 303
    check((await Person(api).get(f"/inbox/{approval}")).text, least=2)
    second = await ask_again(api, approval, payload={"a": 2})
    check((await Person(api).get(f"/inbox/{second}")).text)
    late = Page((await desk.decide("approved", feedback=HOSTILE)).text)
    assert late.faults == []


async def test_in_a_run(api: Api):
    run = {
        "node_id": "node-1",
        "execution_id": "hostile-run",
        "reasoner": NAME,
        "run_id": NAME,
        "input": {HOSTILE: HOSTILE},
    }
    started = await api.post("/executions", run)
    assert started.is_success, started.text
    report = {"status": "failed", "error": HOSTILE, "result": {HOSTILE: HOSTILE}}
    assert (await api.post("/executions/hostile-run/status", report)).is_success
    check((await Person(api).get("/inbox/executions/hostile-run")).text, least=4)
    check((await Person(api).get("/inbox/executions")).text)


async def test_in_a_node(api: Api):
    node = {
        "node_id": "hostile-node",
        "instance_id": "hostile-1",
        "base_url": "http://127.0.0.1:9/%3Cscript%3E",
        "version": "<script>alert(1)</script>",
        "reasoners": [{"name": "work"}],
    }
    assert (await api.post("/nodes/register", node)).is_success
    check((await Person(api).get("/inbox/nodes")).text)


async def test_in_what_is_sought(api: Api):
    person = Person(api)
    for path in ("/inbox", "/inbox/executions"):
        reply = await person.api.client.get(path, params={"q": HOSTILE, "node": "<script>alert(1)</script>"})
        page = Page(reply.text)
        assert page.faults == []
        assert not {"img", "svg/onload=a()"} & {tag.name for tag in page.tags}
        assert all(tag.attributes.get("src", "").startswith("/inbox/") for tag in page.named("script"))


async def test_twenty_thousand_characters_stay_readable_and_folded(api: Api):
    approval = await ask(api, title="Long", description=LONG[:20_000], payload={"text": LONG, "name" * 200: "x"})
    reply = await Person(api).get(f"/inbox/{approval}")
    page = Page(reply.text)
    assert page.faults == []
    assert page.text.count("word word word") >= 2 * 300
    assert page.has("data-fold")
    assert len(reply.content) < 256 * 1024


async def test_a_webhook_senders_name_and_words_are_text_too(api: Api, shared: Shared):
    approval = await ask(api)
    asked: Any = (await api.get(f"/approvals/{approval}")).json()
    body = {"approval_request_id": asked["approval_request_id"], "decision": "approved", "feedback": HOSTILE}
    assert (await api.webhook(body)).is_success
    page = check((await Person(api).get(f"/inbox/{approval}")).text, least=2)
    assert "Approved by desk" in page.words
