"""Lists: each approval is waiting, decided or expired; pages have no gaps, and what is sought stands in the address."""

import re
from typing import Any

import pytest

from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask
from tests.inbox.person import Person
from tests.inbox.reading import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


async def listed(api: Api, query: str = "") -> Page:
    reply = await Person(api).get(f"/inbox{query}")
    assert reply.status_code == 200
    return Page(reply.text)


async def every_row(api: Api, query: str) -> list[str]:
    """The rows of all pages of a list, by their links."""
    page, rows = await listed(api, query), []
    while True:
        rows += page.rows()
        following = [tag.attributes["href"] for tag in page.named("a") if tag.attributes.get("rel") == "next"]
        if not following:
            return rows
        page = await listed(api, following[0].removeprefix("/inbox"))


async def test_an_empty_list_says_what_will_stand_there(api: Api):
    # The first test of this file: nothing was asked yet.
    said = {
        "": "Nothing waits for you",
        "?tab=decided": "Nothing was decided yet",
        "?tab=expired": "Nothing expired",
        "?tab=all": "No agent has asked anything yet",
        "?q=nothing": "Nothing matches",
        "?tab=decided&node=nobody": "Nothing matches",
    }
    for query, words in said.items():
        assert words in (await listed(api, query)).words
    command = (await listed(api)).text
    bodies = re.findall(r"-d '([^']+)'", command)
    paths = re.findall(r"http://127\.0\.0\.1/api/v1(\S+)", command)
    for path, body in zip(paths, bodies, strict=True):
        reply = await api.client.post(f"/api/v1{path}", content=body, headers={"Content-Type": "application/json"})
        assert reply.is_success, reply.text
    assert "May I say hello?" in (await listed(api)).words


async def test_each_is_in_one_tab_and_in_all(api: Api):
    made = [await ask(api, title=f"T{number}") for number in range(6)]
    for approval, verdict in zip(made, ("approved", "rejected", "request_changes"), strict=False):
        await api.decide(approval, verdict)
    await api.post(f"/approvals/{made[3]}/expire")
    await api.post(f"/approvals/{made[4]}/withdraw")
    tabs = {tab: await every_row(api, f"?tab={tab}") for tab in ("waiting", "decided", "expired", "all")}
    parts = tabs["waiting"] + tabs["decided"] + tabs["expired"]
    assert sorted(parts) == sorted(tabs["all"])
    assert len(set(parts)) == len(parts)
    assert set(made[:3]) <= set(tabs["decided"])
    assert set(made[3:5]) <= set(tabs["expired"])
    assert made[5] in tabs["waiting"]


async def test_the_soonest_deadline_comes_first_and_the_latest_end(api: Api):
    hours = [30.0, 2.0, 0.5, 10.0]
    made = {hour: await ask(api, expires_in_hours=hour) for hour in hours}
    rows = [row for row in await every_row(api, "") if row in made.values()]
    assert rows == [made[hour] for hour in sorted(hours)]
    for hour in hours:
        await api.decide(made[hour])
    done = [row for row in await every_row(api, "?tab=decided") if row in made.values()]
    assert done == [made[hour] for hour in reversed(hours)]


async def test_pages_have_no_gaps_while_rows_go(api: Api):
    made = [await ask(api, title="Paged") for _ in range(103)]
    first = await listed(api, "?q=Paged")
    assert len(first.rows()) == 50
    await api.decide(first.rows()[-1])
    following = next(tag.attributes["href"] for tag in first.named("a") if tag.attributes.get("rel") == "next")
    assert "q=Paged" in following
    rest = await every_row(api, following.removeprefix("/inbox"))
    assert sorted(first.rows() + rest) == sorted(made)
    count = next(tag for tag in first.has("data-count"))
    assert count.attributes["data-count"] == "waiting"


async def test_search_and_node_stay_in_every_link(api: Api):
    await ask(api, title="50% off_sale")
    await ask(api, title="500 offXsale")
    page = await listed(api, "?q=50%25+off_sale&node=node-1")
    assert len(page.rows()) == 1
    tabs = [address for tag, address in page.leads() if tag.name == "a" and "tab=" in address]
    assert len(tabs) >= 3
    assert all("q=50%25+off_sale&node=node-1" in address for address in tabs if "q=" in address)
    assert sum("q=" in address for address in tabs) == 3
    assert (await listed(api, "?node=somebody-else")).rows() == []


async def test_a_row_says_who_asks_what_follows_and_when_but_never_the_payload(api: Api):
    approval = await ask(api, title="Soon", payload={"inside": "THE-PAYLOAD"}, expires_in_hours=0.9, on_expiry="resume")
    far = await ask(api, title="Far", description="THE-DESCRIPTION")
    page = await listed(api, "?tab=all")
    assert "THE-PAYLOAD" not in page.text
    assert "THE-DESCRIPTION" not in page.text
    words = (await listed(api, "?q=Soon")).words
    assert re.search(r"Soon node-1 run-\d+ Approval Expires in 5\d min: the run goes on without an answer", words)
    ends = {
        tag.attributes["data-approval"]: page.tags[page.tags.index(tag) :]
        for tag in page.named("article")
        if tag.attributes.get("data-approval") in {approval, far}
    }
    classes = {
        key: next(t.attributes["class"] for t in tags if "data-end" in t.attributes) for key, tags in ends.items()
    }
    assert classes == {approval: "end soon", far: "end far"}


@pytest.mark.parametrize("query", ["?cursor=nonsense", "?q=" + "x" * 257, "?node=%00", "?q=%00"])
async def test_an_address_that_cannot_be_meant_is_explained(api: Api, query: str):
    reply = await Person(api).get(f"/inbox{query}")
    assert reply.status_code == 422
    assert "Something is not as it must be" in Page(reply.text).words


@pytest.mark.parametrize("query", ["?tab=nonsense", "?tab=", "?nonsense=1", "?q=&node=", "?q=%FF%FE"])
async def test_other_addresses_show_the_list(api: Api, query: str):
    assert (await listed(api, query)).has("data-rows")


async def test_a_title_that_is_blank_gives_way_to_the_id(api: Api):
    approval = await ask(api, title=" \t ")
    asked: Any = (await api.get(f"/approvals/{approval}")).json()
    assert asked["approval_request_id"] in (await listed(api, "?tab=all")).words
