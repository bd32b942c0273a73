"""What stands around approvals: runs with their states in words, agents, what those are told, and how all stands."""

from typing import Any

import pytest

from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, opened
from tests.inbox.person import Person
from tests.inbox.reading import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLBACK = "http://127.0.0.1:9/hook"


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


async def shown(api: Api, path: str) -> Page:
    reply = await Person(api).get(path)
    assert reply.status_code == 200, reply.text
    return Page(reply.text)


async def test_empty_pages_say_what_will_stand_there(api: Api):
    # The first test of this file: nothing has happened yet.
    said = {
        "/inbox/executions": "No run yet",
        "/inbox/executions?status=failed": "No run fits",
        "/inbox/deliveries": "Nothing was delivered yet",
        "/inbox/deliveries?status=dead": "No delivery fits",
        "/inbox/nodes": "No node has registered",
        "/inbox/status": "Nothing waits.",
    }
    for path, words in said.items():
        assert words in (await shown(api, path)).words


async def test_waiting_for_a_person_is_a_state_of_its_own(api: Api):
    approval = await ask(api, title="May I?")
    run = (await api.get(f"/approvals/{approval}")).json()["execution_id"]
    for path in (f"/inbox/executions/{run}", "/inbox/executions?status=waiting", f"/inbox/{approval}"):
        words = (await shown(api, path)).words
        assert "Waits for a person" in words
        assert "waiting_for_approval" not in words
    assert run not in (await shown(api, "/inbox/executions?status=running")).words
    await api.decide(approval, "approved", feedback="Go on.")
    page = await shown(api, f"/inbox/executions/{run}")
    for said in ("Run started", "Asked", "Approved operator", "Go on.", "Runs"):
        assert said in page.words


async def test_a_run_shows_what_went_in_and_out(api: Api):
    await api.post("/executions", {"node_id": "n", "execution_id": "io", "reasoner": "f", "input": {"topic": "whales"}})
    await api.post("/executions/io/status", {"status": "succeeded", "result": ["a", {"b": None}]})
    words = (await shown(api, "/inbox/executions/io")).words
    for said in ("Finished", "What went in topic whales", "What came out 1. a 2. b null", "Function f"):
        assert said in words
    assert (await Person(api).get("/inbox/executions/nothing")).status_code == 404


async def test_a_long_list_of_runs_has_pages(api: Api):
    for number in range(53):
        await api.start(f"paged-{number:02}", "paged")
    first = await shown(api, "/inbox/executions?node=paged")
    following = next(tag.attributes["href"] for tag in first.named("a") if tag.attributes.get("rel") == "next")
    second = await shown(api, following)
    seen = [f"paged-{number:02}" for number in range(53)]
    assert sum(name in first.words for name in seen) == 50
    assert [name for name in seen if name in second.words] == seen[:3]


async def test_a_delivery_is_sent_again_by_a_button(api: Api, shared: Shared):
    approval = await ask(api, callback_url=CALLBACK)
    await api.decide(approval, "approved")
    await shared.sql.execute(
        "UPDATE deliveries SET status = 'dead', settled_at = now(), attempts = 12, last_error = 'connection refused' "
        "WHERE approval_id = $1",
        approval,
    )
    page = await shown(api, "/inbox/deliveries?status=dead")
    for said in ("Given up", "12 tries", "connection refused", CALLBACK, "Re-drive"):
        assert said in page.words
    assert "could not be told" in (await opened(api, approval)).page.words
    (action,) = {tag.attributes["action"] for tag in page.named("form") if "redrive" in str(tag)}
    assert (await Person(api).get(action)).status_code == 405
    done = await Person(api).post(action, {"status": "dead"})
    assert (done.status_code, done.headers["location"]) == (303, "/inbox/deliveries?status=dead&said=sent")
    row: Any = await shared.sql.fetchrow("SELECT status, attempts FROM deliveries WHERE approval_id = $1", approval)
    assert tuple(row) == ("pending", 0)
    who = (await api.get(f"/approvals/{approval}")).json()["history"][-1]
    assert (who["type"], who["actor_kind"], who["actor_via"]) == ("delivery.redriven", "person", "inbox")
    await shared.sql.execute("UPDATE deliveries SET status = 'delivered', settled_at = now()")
    again = await Person(api).post(action)
    assert again.headers["location"] == "/inbox/deliveries?said=settled"
    assert "nothing was sent again" in (await shown(api, again.headers["location"])).words
    assert not [tag for tag in (await shown(api, "/inbox/deliveries")).named("form") if "redrive" in str(tag)]
    for wrong in ("dlv_0", "nonsense", "dlv_%00"):
        assert (await Person(api).post(f"/inbox/deliveries/{wrong}/redrive")).status_code == 404


async def test_nodes_say_whether_they_are_there(api: Api):
    node = {"node_id": "painter", "instance_id": "p-1", "base_url": "http://127.0.0.1:9/p", "version": "2.1"}
    assert (await api.post("/nodes/register", node | {"reasoners": [{"name": "paint"}, {"name": "sketch"}]})).is_success
    words = (await shown(api, "/inbox/nodes")).words
    for said in ("painter", "version 2.1", "Connected", "paint, sketch"):
        assert said in words
    assert (await api.post("/nodes/painter/shutdown", {"instance_id": "p-1"})).is_success
    assert "Not connected" in (await shown(api, "/inbox/nodes")).words


async def test_status_tells_how_late_the_work_is(api: Api, shared: Shared):
    approval = await ask(api, title="Late", callback_url=CALLBACK)
    before = (await shown(api, "/inbox/status")).words
    assert "Answers" in before
    assert "Ending what nobody answered Up to date" in before
    # Without workers nothing expires and nothing is sent.
    await shared.sql.execute(
        "UPDATE approvals SET requested_at = now() - interval '2 hours', expires_at = now() - interval '3 minutes' "
        "WHERE approval_id = $1",
        approval,
    )
    assert "Ending what nobody answered 3 min behind" in (await shown(api, "/inbox/status")).words


async def test_a_run_that_asked_several_times_lists_them(api: Api):
    approval = await ask(api, title="First?")
    run = (await api.get(f"/approvals/{approval}")).json()["execution_id"]
    await api.ask("other", run, title="Second?")
    words = (await shown(api, f"/inbox/executions/{run}")).words
    assert "First? ◐" not in words
    for said in ("First? Waiting", "Second? Waiting"):
        assert said in words


async def test_a_try_that_is_under_way_has_not_failed(shared: Shared):
    approval = await ask(shared.api, callback_url=CALLBACK)
    await shared.api.decide(approval)
    for change, words in (
        ("attempts = 1", "The agent is being told."),
        ("last_error = 'refused'", "The agent could not be told yet; it is tried again."),
        ("status = 'delivered', settled_at = now()", "The agent was told."),
    ):
        await shared.sql.execute(f"UPDATE deliveries SET {change} WHERE approval_id = $1", approval)
        assert words in (await opened(shared.api, approval)).page.words
