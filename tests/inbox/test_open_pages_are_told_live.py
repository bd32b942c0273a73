import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.runtime import Happening
from controlplane.workers.desk import TOLD_ONE_BY_ONE
from tests.app import Api, problem, served, until
from tests.inbox.person import COOKIE, Person, signed_in
from tests.inbox.streams import Event, crowd, watching
from tests.keys import Keys, keep_keys, sent
from tests.postgres import Database


@pytest.fixture
async def live(database: Database) -> AsyncIterator[Api]:
    """An application on a port, with its workers, in open mode."""
    async with served(database) as made:
        yield made


@pytest.fixture
async def closed(database: Database, keys: Keys) -> AsyncIterator[Api]:
    """The same, where nobody gets in without a key."""
    async with served(database, open_mode=False) as made:
        made.client.headers.update(sent(keys.agent))
        yield made


@asynccontextmanager
async def asking(api: Api, unique_id: str = "q-1", **fields: Any) -> AsyncIterator["asyncio.Task[httpx.Response]"]:
    """A question, and the call that waits for its answer."""
    body = {"unique_id": unique_id, "message_for_user": "Which code?", "wait": True, **fields}
    call = asyncio.create_task(api.post("/human-feedback", body))
    try:
        await until(lambda: any(each.unique_id == unique_id for each in api.runtime.board.questions()) or call.done())
        yield call
    finally:
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)


def cookie(person: Person) -> dict[str, str]:
    return {"Cookie": f"{COOKIE}={person.cookie}"}


async def test_the_first_event_says_what_is_open(live: Api):
    await live.asked()
    async with asking(live), watching(live.client) as stream:
        hello, card = await stream.next(), await stream.next()
    assert (hello.data["waiting"], hello.data["feedback"], hello.data["questions"]) == (1, 1, ["q-1"])
    assert (card.name, card.data["unique_id"]) == ("feedback_asked", "q-1")
    assert "Which code?" in card.data["html"]


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("approved", "Approved by operator"),
        ("rejected", "Rejected by operator"),
        ("request_changes", "Changes requested by operator"),
    ],
)
async def test_a_verdict_is_told_with_who_gave_it(live: Api, decision: str, words: str):
    approval_id = await live.asked()
    async with watching(live.client) as stream:
        await live.decide(approval_id, decision, feedback="words for the agent alone")
        *_, settled = await stream.until("settled")
        counts = await stream.next("counts")
    assert settled.data.keys() == {"approval_id", "status", "by", "at", "words"}
    assert (settled.data["approval_id"], settled.data["status"]) == (approval_id, decision)
    assert settled.data["words"] == words
    assert counts.data == {"waiting": 0}


async def test_a_question_is_answered_and_an_edited_payload_approved(live: Api):
    editable = {"kind": "form", "schema": {"type": "object"}, "editable": True}
    asked = await live.asked("q-1", "run-1", form={"kind": "text"})
    edited = await live.asked("q-2", "run-2", form=editable, payload={})
    async with watching(live.client) as stream:
        await live.decide(asked, values="Blue")
        assert (await stream.until("settled"))[-1].data["words"] == "Answered by operator"
        await live.decide(edited)
        assert (await stream.until("settled"))[-1].data["words"] == "Approved by operator"


async def test_what_nobody_answered_is_nobodys_verdict(live: Api):
    async with watching(live.client) as stream:
        approval_id = await live.asked(expires_in_hours=1 / 3600)
        *before, settled = await stream.until("settled")
    assert approval_id in [event.data["approval_id"] for event in before if event.name == "asked"]
    assert (settled.data["status"], settled.data["by"]) == ("expired", None)
    assert settled.data["words"] == "Expired, nobody answered"


@pytest.mark.parametrize("listen", [True, False])
async def test_every_page_of_every_replica_is_told_once(database: Database, listen: bool):
    async with AsyncExitStack() as stack:
        apis = [await stack.enter_async_context(served(database, listen=listen)) for _ in range(2)]
        approval_ids = [await apis[0].asked(f"q-{n}", f"run-{n}") for n in range(3)]
        streams = await stack.enter_async_context(crowd([api.base for api in apis], 10))
        for approval_id in approval_ids:
            await apis[1].decide(approval_id)
        heard = await asyncio.gather(*(stream.until("counts", waiting=0) for stream in streams))
    for events in heard:
        told = [event.data["approval_id"] for event in events if event.name == "settled"]
        assert sorted(told) == sorted(approval_ids)


async def test_the_database_is_looked_at_once_for_all_pages(live: Api, monkeypatch: pytest.MonkeyPatch):
    approval_id = await live.asked()
    async with crowd([live.base], 30) as streams:
        looks = []
        look = live.runtime.look
        monkeypatch.setattr(live.runtime, "look", lambda *given: looks.append(1) or look(*given))
        await live.decide(approval_id)
        await asyncio.gather(*(stream.until("settled") for stream in streams))
        await asyncio.gather(*(stream.next("counts") for stream in streams))
        assert len(looks) == 1


async def test_a_question_comes_with_its_card_and_goes_with_its_outcome(live: Api):
    secret = "493021-of-nobody-else"
    async with watching(live.client) as stream, watching(live.client) as other:
        async with asking(live, kind="secret") as call:
            *_, card = await stream.until("feedback_asked")
            await live.client.post(
                "/inbox/feedback/q-1/answer", data={"response": secret}, headers={"Origin": live.base}
            )
            assert (await call).json()["response"] == secret
            seen = [*await stream.until("feedback_resolved"), await stream.next("counts")]
            others = await other.until("feedback_resolved")
        async with asking(live, "q-2"):
            await stream.until("feedback_asked", unique_id="q-2")
        *_, gone = await stream.until("feedback_resolved")
    assert card.data["html"] == next(event for event in others if event.name == "feedback_asked").data["html"]
    resolved = next(event for event in seen if event.name == "feedback_resolved").data
    assert resolved == {"unique_id": "q-1", "outcome": "answered", "words": "Answered."}
    assert (gone.data["unique_id"], gone.data["outcome"]) == ("q-2", "cancelled")
    assert secret not in repr([seen, others])


async def test_a_card_is_drawn_for_nobody_in_particular(closed: Api, keys: Keys):
    ann = await signed_in(closed, keys.review)
    async with watching(closed.client, **cookie(ann)) as stream, asking(closed):
        *_, card = await stream.until("feedback_asked")
    assert ann.token
    assert ann.token not in card.data["html"]
    assert 'name="csrf" value=""' in card.data["html"]


async def test_who_may_not_answer_hears_of_no_question(closed: Api, keys: Keys):
    admin, ann = await signed_in(closed, keys.admin), await signed_in(closed, keys.review)
    async with (
        watching(closed.client, **cookie(admin)) as hers,
        watching(closed.client, **cookie(ann)) as anns,
        asking(closed),
    ):
        await anns.until("feedback_asked")
        await closed.asked()
        heard: list[Event] = await hers.until("counts")
    assert [event.name for event in heard] == ["hello", "asked", "counts"]
    assert "feedback" not in heard[-1].data


async def test_nobody_gets_in_without_a_session(closed: Api, keys: Keys):
    ann = await signed_in(closed, keys.review)
    for path in ("/inbox/events", "/inbox/settled"):
        assert problem(await closed.client.get(path)) == (401, "not_authenticated")
    allowed = await ann.get("/inbox/settled", Origin="https://elsewhere.example")
    assert allowed.status_code == 200
    assert "access-control-allow-origin" not in allowed.headers
    for site in ("cross-site", "same-site", "none"):
        refused = await ann.get("/inbox/events", **{"Sec-Fetch-Site": site, "Accept": "text/event-stream"})
        assert refused.status_code == 403


async def test_a_stream_ends_with_its_session(closed: Api, keys: Keys):
    ann = await signed_in(closed, keys.review)
    async with watching(closed.client, **cookie(ann)) as stream:
        await stream.next("hello")
        left = await ann.post("/inbox/sign-out", {})
        assert left.status_code == 303, left.text
        assert await stream.rest() == []


async def test_a_stream_ends_with_its_key(closed: Api, keys: Keys, sql: Any):
    ann = await signed_in(closed, keys.review)
    async with watching(closed.client, **cookie(ann)) as stream:
        await stream.next("hello")
        await sql.execute("UPDATE api_keys SET revoked_at = now() WHERE name = 'review'")
        assert await stream.rest() == []


async def test_a_stream_without_a_key_ends_with_the_open_mode(live: Api, database: Database):
    async with watching(live.client) as stream:
        await stream.next("hello")
        await keep_keys(database)
        assert await stream.rest() == []


async def test_a_page_that_was_away_finds_what_ended(live: Api):
    approval_ids = [await live.asked(f"q-{n}", f"run-{n}") for n in range(3)]
    await live.decide(approval_ids[0], "rejected")
    reply = await live.client.get("/inbox/settled", params={"ids": ",".join(approval_ids)})
    assert [(each["approval_id"], each["words"]) for each in reply.json()] == [
        (approval_ids[0], "Rejected by operator")
    ]
    assert (await live.client.get("/inbox/settled")).json() == []


@pytest.mark.parametrize("ids", ["nonsense", "apr_\u00e9", ",".join(["apr_0"] * 101)])
async def test_only_ids_are_looked_for(live: Api, ids: str):
    assert problem(await live.client.get("/inbox/settled", params={"ids": ids})) == (422, "invalid_field")


async def test_many_ends_at_once_are_told_as_a_beginning(live: Api):
    async with watching(live.client) as stream:
        await stream.next("hello")
        live.runtime.happenings.publish(
            Happening("approval.approved", None, f"apr_{n}") for n in range(TOLD_ONE_BY_ONE + 1)
        )
        assert (await stream.next()).name == "hello"


async def test_a_database_that_is_away_delays_and_loses_nothing(live: Api, monkeypatch: pytest.MonkeyPatch):
    approval_id = await live.asked()
    look, missed = live.runtime.look, asyncio.Event()

    def away(*_: Any) -> Any:
        missed.set()
        raise DatabaseUnavailable

    async def come_back() -> None:
        await missed.wait()
        missed.clear()
        monkeypatch.setattr(live.runtime, "look", look)

    monkeypatch.setattr(live.runtime, "look", away)
    async with watching(live.client) as stream:
        await come_back()
        assert (await stream.next()).name == "hello"
        monkeypatch.setattr(live.runtime, "look", away)
        await live.decide(approval_id)
        await come_back()
        assert (await stream.next("settled")).data["approval_id"] == approval_id
