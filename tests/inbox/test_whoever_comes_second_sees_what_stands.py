"""A late click shows the outcome, the same verdict twice is a success, and nobody loses what they typed."""

import asyncio
from typing import Any

import pytest

from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, ask_again, opened, status_of
from tests.inbox.person import Person
from tests.inbox.reading import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


@pytest.fixture
def sql(shared: Shared) -> Any:
    """A connection to its database."""
    return shared.sql


async def test_of_two_at_once_one_wins(api: Api):
    approval = await ask(api)
    desks = [await opened(api, approval) for _ in range(6)]
    verdicts = ["approved", "rejected"] * 3
    replies = await asyncio.gather(*(desk.decide(verdict) for desk, verdict in zip(desks, verdicts, strict=True)))
    stands = await status_of(api, approval)
    assert stands in {"approved", "rejected"}
    for verdict, reply in zip(verdicts, replies, strict=True):
        assert reply.status_code == (303 if verdict == stands else 409)


async def test_the_same_verdict_twice_is_a_success(api: Api):
    desk = await opened(api, await ask(api))
    for _ in range(2):
        done = await desk.decide("approved", feedback="Fine.")
        assert (done.status_code, done.headers["location"]) == (303, f"/inbox/{desk.approval_id}")


async def test_a_first_press_that_comes_late_shows_the_outcome(api: Api):
    desk = await opened(api, await ask(api))
    await api.decide(desk.approval_id, "rejected")
    late = await desk.press("approved", feedback="Fine.")
    assert late.status_code == 409
    assert "It was settled before your answer came." in Page(late.text).words
    assert "Fine." in Page(late.text).text


@pytest.mark.parametrize(
    ("ending", "says", "never"),
    [
        ("expire", "nobody answered", "Expired by"),
        ("withdraw", "Nobody decided: the question was taken back", "Withdrawn by"),
    ],
)
async def test_what_ended_by_itself_is_nobodys_verdict(api: Api, ending: str, says: str, never: str):
    approval = await ask(api)
    desk = await opened(api, approval)
    await api.post(f"/approvals/{approval}/{ending}")
    for page in (Page((await desk.decide("approved")).text), (await opened(api, approval)).page):
        assert says in page.words
        assert never not in page.words
        assert page.verdicts() == []


async def test_an_answer_after_the_deadline_meets_the_expiry(api: Api, sql: Any):
    # No sweeper runs here: the answer itself finds that the time is up.
    approval = await ask(api)
    desk = await opened(api, approval)
    await sql.execute(
        "UPDATE approvals SET requested_at = now() - interval '2 hours', expires_at = now() - interval '1 hour' "
        "WHERE approval_id = $1",
        approval,
    )
    late = await desk.decide("approved", feedback="Yes!")
    page = Page(late.text)
    assert late.status_code == 409
    assert "nobody answered" in page.words
    assert "Yes!" in page.text
    assert await status_of(api, approval) == "expired"


async def test_the_outcome_says_who_when_and_what_follows(api: Api):
    approval = await ask(api)
    await (await opened(api, approval)).decide("rejected", feedback="Too dear.")
    page = (await opened(api, approval)).page
    assert "Rejected by operator, " in page.words
    assert "The run was cancelled." in page.words
    assert "“Too dear.”" in page.words
    assert page.named("time")


async def test_consequences_name_what_else_waits(api: Api):
    approval = await ask(api)
    await ask_again(api, approval, request_id="q-beside", on_expiry="resume", title="Another one")
    words = (await opened(api, approval)).page.words
    assert "If you approve, the run goes on once its 1 other question is answered." in words
    assert "If you reject, the run is cancelled, and its 1 other question is withdrawn." in words
    assert "the run is cancelled, and its 1 other question is withdrawn" in words
    assert "Another one" in words


async def test_an_agent_that_is_gone_is_said_to_be_gone(api: Api):
    base = "http://127.0.0.1:9/agent"
    node = {
        "node_id": "node-1",
        "base_url": base,
        "version": "1",
        "reasoners": [{"name": "work"}],
        "instance_id": "i-1",
    }
    assert (await api.post("/nodes/register", node)).status_code in {200, 201}
    approval = await ask(api, callback_url=f"{base}/hook")
    assert "The agent is connected." in (await opened(api, approval)).page.words
    assert (await api.post("/nodes/node-1/shutdown", {"instance_id": "i-1"})).status_code == 202
    desk = await opened(api, approval)
    assert "it will be told when it is back" in desk.page.words
    assert (await desk.decide("approved")).status_code == 303
    assert "The agent is not connected; it will be told when it is back." in (await opened(api, approval)).page.words


async def test_an_approval_that_does_not_exist_is_said_to_be_none(api: Api):
    for path in ("/inbox/apr_0", "/inbox/nonsense", "/inbox/apr_%00", "/inbox/apr_%E2%80%AE"):
        reply = await Person(api).get(path)
        assert reply.status_code == 404
        assert "There is nothing here" in Page(reply.text).words
