"""Two presses decide, and nothing less: no look, no link, no Enter in a field, no single press."""

from typing import Any

import pytest

from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, opened, status_of
from tests.inbox.person import Person
from tests.inbox.reading import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")
VERDICTS = ["approved", "rejected", "request_changes"]
PATHS = [
    "/inbox",
    "/inbox?tab=all",
    "/inbox/executions",
    "/inbox/executions/run-1",
    "/inbox/deliveries",
    "/inbox/nodes",
]


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


@pytest.fixture
def sql(shared: Shared) -> Any:
    """A connection to its database."""
    return shared.sql


@pytest.mark.parametrize("verdict", VERDICTS)
async def test_the_first_press_arms_and_the_second_decides(api: Api, verdict: str):
    approval = await ask(api, title="Send it?", payload={"to": "everybody"})
    desk = await opened(api, approval)
    armed = await desk.press(verdict, feedback="  Because.\r\nIndeed. ")
    assert armed.status_code == 200
    assert await status_of(api, approval) == "pending"
    desk.page = Page(armed.text)
    assert desk.page.fields()["confirmed"] == verdict
    assert desk.page.areas["feedback"] == "Because.\nIndeed."
    assert desk.page.verdicts() == ["back", verdict]
    done = await desk.press(verdict, feedback=desk.page.areas["feedback"])
    assert (done.status_code, done.headers["location"]) == (303, f"/inbox/{approval}")
    kept = (await api.get(f"/approvals/{approval}")).json()
    assert (kept["status"], kept["response"]["feedback"]) == (verdict, "Because.\nIndeed.")
    last = kept["history"][-1]
    assert (last["actor_kind"], last["actor_name"], last["actor_via"]) == ("person", "operator", "inbox")


async def test_back_disarms_and_keeps_the_text(api: Api):
    approval = await ask(api)
    desk = await opened(api, approval)
    desk.page = Page((await desk.press("approved", feedback="Hm.")).text)
    again = Page((await desk.press("back", feedback="Hm.")).text)
    assert again.fields()["confirmed"] == ""
    assert again.areas["feedback"] == "Hm."
    assert again.verdicts() == ["rejected", "request_changes", "approved"]
    assert await status_of(api, approval) == "pending"


CONFUSED = [
    ("approved", "rejected"),
    ("rejected", "approved"),
    ("approved", "yes"),
    ("approved", ""),
    ("Approved", "Approved"),
    ("approve", "approve"),
    ("expired", "expired"),
    ("withdrawn", "withdrawn"),
    ("", ""),
]


@pytest.mark.parametrize(("pressed", "confirmed"), CONFUSED)
async def test_a_confirmation_of_something_else_is_none(api: Api, pressed: str, confirmed: str):
    approval = await ask(api)
    reply = await (await opened(api, approval)).press(pressed, confirmed=confirmed)
    assert reply.status_code in {200, 422}
    assert await status_of(api, approval) == "pending"


async def test_enter_in_a_field_sends_nothing(api: Api):
    # A browser presses the first button of a form then; one that is off keeps it from sending anything.
    page = (await opened(api, await ask(api))).page
    first = next(tag for tag in page.tags[page.tags.index(page.has("data-decide")[0]) :] if tag.name == "button")
    assert {"disabled", "hidden"} <= first.attributes.keys()


async def test_looking_changes_nothing(api: Api, sql: Any):
    approval = await ask(api, title="Send it?")
    before = await rows(sql)
    person = Person(api)
    for path in [*PATHS, f"/inbox/{approval}", f"/inbox/{approval}/decision", f"/inbox/{approval}?verdict=approved"]:
        for method in ("GET", "HEAD"):
            await person.api.client.request(method, path, params={"verdict": "approved", "confirmed": "approved"})
    assert await rows(sql) == before
    assert await status_of(api, approval) == "pending"


async def test_changes_need_words_and_a_rejection_asks_for_them(api: Api):
    approval = await ask(api)
    desk = await opened(api, approval)
    refused = await desk.decide("request_changes", feedback=" \n ")
    assert refused.status_code == 422
    assert "Say what is to change" in Page(refused.text).words
    asked = Page((await desk.press("rejected")).text)
    assert "without a word?" in asked.words
    assert "without a word?" not in Page((await desk.press("rejected", feedback="No money.")).text).words
    assert (await desk.decide("rejected")).status_code == 303


async def test_a_comment_that_is_too_long_is_kept_and_refused(api: Api):
    desk = await opened(api, await ask(api))
    words = "x" * 20_001
    refused = await desk.decide("rejected", feedback=words)
    assert refused.status_code == 422
    assert Page(refused.text).areas["feedback"] == words
    assert (await desk.decide("rejected", feedback=words[1:])).status_code == 303


async def rows(sql: Any) -> list[Any]:
    tables = ("approvals", "executions", "deliveries", "history", "feedback", "sessions")
    return [await sql.fetch(f"SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM {table} t") for table in tables]
