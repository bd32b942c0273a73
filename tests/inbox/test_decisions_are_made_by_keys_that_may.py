"""Whoever signed in decides under their key's name; a key that may only look is shown no button and can press none."""

import pytest

from tests.app import Api
from tests.inbox.deciding import opened
from tests.inbox.person import signed_in
from tests.inbox.reading import Page
from tests.keys import Keys, sent


@pytest.fixture
async def approval(guarded: Api, keys: Keys) -> str:
    """What an agent asked with its own key."""
    headers = sent(keys.agent)
    await guarded.client.post("/api/v1/executions", json={"node_id": "n", "execution_id": "r"}, headers=headers)
    asked = {"approval_request_id": "q", "title": "Send it?"}
    reply = await guarded.client.post("/api/v1/executions/r/request-approval", json=asked, headers=headers)
    return str(reply.json()["approval_id"])


async def test_the_loser_sees_the_winner_and_keeps_the_text(guarded: Api, keys: Keys, approval: str):
    ann, bob = await signed_in(guarded, keys.review), await signed_in(guarded, keys.operator)
    first, second = await opened(guarded, approval, ann), await opened(guarded, approval, bob)
    assert (await first.decide("approved", feedback="Go.")).status_code == 303
    late = await second.decide("rejected", feedback="<b>No</b>, because of the budget.")
    page = Page(late.text)
    assert late.status_code == 409
    assert "Approved by review, " in page.words
    assert "Your rejection does not count" in page.words
    assert "<b>No</b>, because of the budget." in page.text
    assert page.verdicts() == []
    kept = (await guarded.client.get(f"/api/v1/approvals/{approval}", headers=sent(keys.review))).json()
    assert (kept["status"], kept["history"][-1]["actor_name"]) == ("approved", "review")


async def test_a_key_that_may_only_look_gets_no_buttons(guarded: Api, keys: Keys, approval: str):
    admin = await signed_in(guarded, keys.admin)
    desk = await opened(guarded, approval, admin)
    assert desk.page.verdicts() == []
    assert "Your key may look but not decide" in desk.page.words
    reply = await admin.post(f"/inbox/{approval}/decision", {"verdict": "approved", "confirmed": "approved"})
    assert reply.status_code == 403


async def test_a_control_that_a_key_may_not_use_is_not_drawn(guarded: Api, keys: Keys, approval: str):
    reviewer, admin = await signed_in(guarded, keys.review), await signed_in(guarded, keys.admin)
    assert "/inbox/deliveries" not in (await reviewer.get("/inbox")).text
    assert "/inbox/deliveries" in (await admin.get("/inbox")).text
    assert "Webhook senders" not in Page((await reviewer.get("/inbox/status")).text).words
    assert "Webhook senders" in Page((await admin.get("/inbox/status")).text).words


async def test_the_first_approval_can_be_made_as_the_empty_page_says(guarded: Api, keys: Keys):
    reviewer = await signed_in(guarded, keys.review)
    page = Page((await reviewer.get("/inbox")).text)
    for said in ("Nothing waits for you", "/api/v1/executions", "X-API-Key: $HOLDSHORT_API_KEY"):
        assert said in page.text
