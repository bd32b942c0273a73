"""The form carries what was before the person's eyes; something else that stands, or was not read, is not decided."""

import json
from typing import Any

import pytest

from tests.app import Api
from tests.inbox.conftest import Shared
from tests.inbox.deciding import ask, ask_again, opened, status_of
from tests.inbox.reading import Page

pytestmark = pytest.mark.asyncio(loop_scope="module")
OTHER = "f" * 64
LONG = "\n".join(f"Line {number} of the contract." for number in range(80))


@pytest.fixture
def api(shared: Shared) -> Api:
    """The application that these tests share."""
    return shared.api


@pytest.fixture
def sql(shared: Shared) -> Any:
    """A connection to its database."""
    return shared.sql


@pytest.mark.parametrize("changed", [{"digest": OTHER}, {"digest": ""}, {"round": "2"}, {"round": ""}, {"round": "1 "}])
@pytest.mark.parametrize("verdict", ["approved", "rejected", "request_changes"])
async def test_another_payload_or_round_is_refused_and_the_text_kept(api: Api, changed: dict[str, str], verdict: str):
    approval = await ask(api, payload={"to": "everybody"})
    refused = await (await opened(api, approval)).decide(verdict, feedback="My words.", **changed)
    page = Page(refused.text)
    assert refused.status_code == 409
    assert "Nothing was decided: this is not what you had before you." in page.words
    assert page.areas["feedback"] == "My words."
    assert page.fields()["digest"] not in {OTHER, ""}
    assert await status_of(api, approval) == "pending"


@pytest.mark.parametrize("left_out", ["digest", "round"])
async def test_a_form_that_does_not_say_what_was_seen_is_refused(api: Api, left_out: str):
    approval = await ask(api, payload={"to": "everybody"})
    desk = await opened(api, approval)
    fields = desk.page.fields() | {"verdict": "approved", "confirmed": "approved"}
    fields.pop(left_out)
    assert (await desk.person.post(f"/inbox/{approval}/decision", fields)).status_code == 409
    assert await status_of(api, approval) == "pending"


async def test_what_changed_since_is_shown(api: Api):
    first = await ask(api, payload={"amount": 10, "to": "Ann"})
    seen = (await opened(api, first)).page.fields()["digest"]
    await api.decide(first, "request_changes", feedback="Less.")
    second = await ask_again(api, first, payload={"amount": 7, "to": "Ann"})
    refused = await (await opened(api, second)).decide("approved", digest=seen)
    words = Page(refused.text).words
    assert refused.status_code == 409
    assert "You saw 10" in words
    assert "Now 7" in words


async def test_an_earlier_round_is_compared(api: Api):
    first = await ask(api, payload={"amount": 10, "to": "Ann", "text": "One\nTwo\nThree", "gone": True})
    await api.decide(first, "request_changes", feedback="Less, please.")
    second = await ask_again(api, first, payload={"amount": 7, "to": "Ann", "text": "One\n2\nThree", "new": None})
    words = (await opened(api, second)).page.words
    for said in (
        "Changed since last time",
        "Last time 10",
        "Now 7",
        "Last time: Two",
        "Now: 2",
        "Less, please.",
        "no longer there",
    ):
        assert said in words
    assert "A newer round of this question exists" in (await opened(api, first)).page.words


@pytest.mark.parametrize(
    "payload", [{"text": LONG}, {"text": "x" * 801}, list(range(25)), {str(n): n for n in range(25)}]
)
async def test_what_is_folded_must_be_opened(api: Api, payload: Any):
    approval = await ask(api, payload=payload)
    desk = await opened(api, approval)
    assert desk.page.has("data-fold")
    assert desk.page.has("data-read")
    for verdict in ("press", "decide"):
        refused = await getattr(desk, verdict)("approved", feedback="Fine.")
        assert refused.status_code == 422
        assert "Open all that is folded" in Page(refused.text).words
        assert Page(refused.text).areas["feedback"] == "Fine."
    assert await status_of(api, approval) == "pending"
    assert (await desk.decide("approved", read="yes")).status_code == 303


async def test_what_is_not_read_can_be_rejected(api: Api):
    approval = await ask(api, payload={"text": LONG})
    assert (await (await opened(api, approval)).decide("rejected")).status_code == 303


@pytest.mark.parametrize("planted", ['{"to": "nobody"}', '{"to": 1, "to": 2}', '{"to": "\\u0000"}', '{"to": 1e999}'])
async def test_a_payload_that_is_not_what_was_asked_with_cannot_be_approved(api: Api, sql: Any, planted: str):
    approval = await ask(api, payload={"to": "everybody"})
    await sql.execute("UPDATE approvals SET payload = $1 WHERE approval_id = $2", planted, approval)
    desk = await opened(api, approval)
    assert "so it cannot be approved" in desk.page.words
    assert desk.page.verdicts() == ["rejected", "request_changes"]
    refused = await desk.decide("approved")
    assert refused.status_code == 422
    assert "This payload cannot be approved" in Page(refused.text).words
    assert await status_of(api, approval) == "pending"
    assert (await desk.decide("request_changes", feedback="Send it anew.")).status_code == 303


async def test_no_payload_is_said_to_be_none(api: Api):
    desk = await opened(api, await ask(api))
    assert "The agent sent no payload with this" in desk.page.words
    assert (await desk.decide("approved")).status_code == 303


async def test_size_and_digest_stand_beside_the_payload(api: Api):
    payload = {"to": "everybody"}
    approval = await ask(api, payload=payload)
    shown = (await api.get(f"/approvals/{approval}")).json()
    words = (await opened(api, approval)).page.words
    assert f"{len(json.dumps(payload, separators=(',', ':')))} bytes, SHA-256 {shown['payload_digest']}" in words
