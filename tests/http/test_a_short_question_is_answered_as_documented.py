"""Short-lived questions: what asking and answering are told, each refusal in its order, by the database's clock."""

import asyncio
from typing import Any

import pytest

from tests.app import Api, problem
from tests.feedback import PENDING, SUBMIT, Asker, answer, submit
from tests.postgres import wait_until_any_blocked

_PAST = "clock_timestamp() - interval '1 ms' WHERE status = 'pending'"
LATE = f"UPDATE feedback SET expires_at = {_PAST}"
GONE = f"UPDATE feedback SET waiter_until = {_PAST}"
CHOICE: dict[str, Any] = {"options": ["Yes", "No, never", "later"]}
YES_NO: dict[str, Any] = {"kind": "yes_no"}
LABELLED: dict[str, Any] = {"kind": "yes_no", "yes_label": "Ship it", "no_label": "Hold"}


@pytest.fixture
def asker() -> Asker:
    return Asker()


async def ended(api: Api, sql: Any, asker: Asker, how: str, unique_id: str = "f-1") -> None:
    """A question that has ended: answered, withdrawn, or past a moment that nobody has looked at yet."""
    await asker.ask(api.client, unique_id)
    if how == "answered":
        assert (await submit(api.client, "482913", unique_id, submission_id="s-1")).status_code == 200
    elif how == "withdrawn":
        assert (await api.client.delete(f"/api/v1/human-feedback/{unique_id}")).status_code == 200
    else:
        await sql.execute(LATE if how == "late" else GONE)


async def test_asking_answering_and_fetching(api: Api, asker: Asker):
    asked = await asker.ask(api.client, timeout_seconds=60, session_id="s")
    assert asked.keys() == {"unique_id", "created_at", "expires_at"}
    assert (await answer(api.client)).json() == {"outcome": "pending"}
    shown = (await api.client.get(PENDING)).json()["requests"]
    assert shown == [
        {
            "unique_id": "f-1",
            "message_for_user": "Which code?",
            "kind": "text",
            "options": None,
            "allow_feedback": True,
            "yes_label": None,
            "no_label": None,
            "context": "This request expires in 60 seconds.",
            "session_id": "s",
            "created_at": asked["created_at"],
            "expires_at": asked["expires_at"],
        }
    ]
    reply = await submit(api.client, " 482913 ")
    assert (reply.status_code, reply.json()["unique_id"], reply.json()["status"]) == (200, "f-1", "success")
    assert asker.open(await answer(api.client)) == " 482913 "
    assert asker.open(await answer(api.client)) == " 482913 "
    assert (await api.client.get(PENDING)).json() == {"requests": []}
    acknowledged = await api.client.delete("/api/v1/human-feedback/f-1")
    assert acknowledged.json() == {"unique_id": "f-1", "outcome": "answered"}
    assert problem(await answer(api.client)) == (410, "answer_taken")


KINDS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "  two\nlines  ", "  two\nlines  "),
    ({"kind": "secret"}, "hunter2", "hunter2"),
    (YES_NO, "yes", "yes"),
    (YES_NO, " Y ", "yes"),
    (YES_NO, "TRUE", "yes"),
    (YES_NO, "Approve", "yes"),
    (YES_NO, "n", "no"),
    (YES_NO, "reject", "no"),
    (YES_NO, "False", "no"),
    (LABELLED, "ship IT", "yes"),
    (LABELLED, "hold", "no"),
    (LABELLED, "yes", "yes"),
    (CHOICE, "no, never", "No, never"),
    (CHOICE, "LATER", "later"),
    (CHOICE, "Yes", "Yes"),
]


async def test_an_answer_is_what_its_kind_makes_of_it(api: Api, asker: Asker):
    for number, (fields, response, expected) in enumerate(KINDS):
        await asker.ask(api.client, f"f-{number}", **fields)
        assert (await submit(api.client, response, f"f-{number}")).status_code == 200, response
        assert asker.open(await answer(api.client, f"f-{number}"), f"f-{number}") == expected


UNCLEAR: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["", " \t\n"]),
    ({"kind": "secret"}, ["", "   "]),
    (YES_NO, ["", "maybe", "yes no", "yes!", "1", "ok", "\u212aes"]),
    (LABELLED, ["ship", "Ship it Hold", "hold on"]),
    (CHOICE, ["", "no", "yes, later", "Yes, No, never", "true"]),
]


async def test_nothing_unclear_becomes_an_answer(api: Api, asker: Asker):
    for number, (fields, responses) in enumerate(UNCLEAR):
        await asker.ask(api.client, f"f-{number}", **fields)
        for response in responses:
            assert problem(await submit(api.client, response, f"f-{number}")) == (422, "invalid_answer"), response
            assert (await answer(api.client, f"f-{number}")).json() == {"outcome": "pending"}
    assert len((await api.client.get(PENDING)).json()["requests"]) == len(UNCLEAR)


async def test_what_is_no_answer_at_all_is_refused_by_its_bytes(api: Api, asker: Asker):
    await asker.ask(api.client)
    json_type = {"Content-Type": "application/json"}
    over = b'{"unique_id": "f-1", "response": "' + b"x" * 16 * 1024 + b'"}'
    for raw, expected in (
        (over, (413, "body_too_large")),
        (b"", (400, "invalid_body")),
        (b"yes", (400, "invalid_body")),
        (b"[]", (422, "invalid_field")),
        (b'{"unique_id": "f-1", "response": "a\\u0000b"}', (400, "invalid_body")),
        (b'{"unique_id": "f-1"}', (422, "invalid_field")),
        (b'{"unique_id": "f-1", "response": 482913}', (422, "invalid_field")),
        (b'{"unique_id": "f-1", "response": null}', (422, "invalid_field")),
        (b'{"unique_id": "f-1", "response": "x", "submission_id": ""}', (422, "invalid_field")),
    ):
        assert problem(await api.client.post(SUBMIT, content=raw, headers=json_type)) == expected, raw[:40]
    assert (await answer(api.client)).json() == {"outcome": "pending"}


ENDS = {
    "answered": (409, "already_answered"),
    "withdrawn": (410, "request_cancelled"),
    "gone": (410, "request_cancelled"),
    "late": (410, "request_expired"),
}


async def test_no_end_takes_an_answer_whatever_it_says(api: Api, sql: Any, asker: Asker):
    for how, expected in ENDS.items():
        await ended(api, sql, asker, how, how)
        for response, fields in (("yes", {}), ("", {}), ("yes", {"submission_id": "s-2"})):
            assert problem(await submit(api.client, response, how, **fields)) == expected, how
        assert (await api.client.get(PENDING)).json() == {"requests": []}
        told = await sql.fetch("SELECT type FROM history WHERE data ->> 'unique_id' = $1 ORDER BY seq", how)
        assert len(told) == 2
        if how != "answered":
            assert problem(await answer(api.client, how)) == expected
            left = await sql.fetchrow("SELECT message, public_key, kind, ct FROM feedback WHERE unique_id = $1", how)
            assert set(left) == {None}


async def test_the_same_submission_is_a_success_again_and_no_other_is(api: Api, sql: Any, asker: Asker):
    await ended(api, sql, asker, "answered")
    for response in ("482913", "something else"):
        assert (await submit(api.client, response, submission_id="s-1")).status_code == 200
    assert asker.open(await answer(api.client)) == "482913"
    assert (await api.client.delete("/api/v1/human-feedback/f-1")).status_code == 200
    assert (await submit(api.client, "482913", submission_id="s-1")).status_code == 200
    assert problem(await submit(api.client, "482913")) == (409, "already_answered")
    await ended(api, sql, asker, "withdrawn", "f-2")
    assert problem(await submit(api.client, "x", "f-2", submission_id="s-1")) == (410, "request_cancelled")


async def test_nobody_answers_what_nobody_asked(api: Api):
    for unique_id in ("f-0", "", "a b", "x" * 2000):
        assert problem(await submit(api.client, "yes", unique_id, submission_id="s")) == (404, "request_not_found")
    for path in ("f-0/answer", "%20/answer", f"{'x' * 200}/answer"):
        assert problem(await api.get(f"/human-feedback/{path}")) == (404, "request_not_found")
    assert problem(await api.client.delete("/api/v1/human-feedback/f-0")) == (404, "request_not_found")


async def test_of_two_people_at_once_one_answers(api: Api, sql: Any, asker: Asker, database: Any):
    await asker.ask(api.client)
    watcher = await database.connect()
    async with sql.transaction():
        await sql.execute("SELECT 1 FROM feedback FOR UPDATE")
        rivals = [asyncio.create_task(submit(api.client, each, submission_id=each)) for each in ("111111", "222222")]
        await wait_until_any_blocked(watcher, 2)
    replies = await asyncio.gather(*rivals)
    await watcher.close()
    assert sorted(reply.status_code for reply in replies) == [200, 409]
    refused = next(reply for reply in replies if reply.status_code == 409)
    assert problem(refused) == (409, "already_answered")
    won = next(each for each, reply in zip(("111111", "222222"), replies, strict=True) if reply is not refused)
    assert asker.open(await answer(api.client)) == won
    assert await sql.fetchval("SELECT count(*) FROM history WHERE type = 'feedback.answered'") == 1


async def test_the_time_counts_at_which_the_question_was_had(api: Api, sql: Any, asker: Asker, database: Any):
    watcher = await database.connect()
    for change, code in ((LATE, "request_expired"), (GONE, "request_cancelled")):
        await asker.ask(api.client, code)
        async with sql.transaction():
            await sql.execute("SELECT 1 FROM feedback FOR UPDATE")
            held = asyncio.create_task(submit(api.client, "482913", code))
            await wait_until_any_blocked(watcher)
            await sql.execute(change)
        assert problem(await held) == (410, code)
    await watcher.close()


async def test_an_answer_and_a_withdrawal_at_once_have_one_outcome(api: Api, sql: Any, asker: Asker, database: Any):
    await asker.ask(api.client)
    watcher = await database.connect()
    async with sql.transaction():
        await sql.execute("SELECT 1 FROM feedback FOR UPDATE")
        said = asyncio.create_task(submit(api.client, "482913"))
        await wait_until_any_blocked(watcher)
        gone = asyncio.create_task(api.client.delete("/api/v1/human-feedback/f-1"))
        await wait_until_any_blocked(watcher, 2)
    answered, withdrawn = await asyncio.gather(said, gone)
    await watcher.close()
    if answered.status_code == 200:
        assert withdrawn.json()["outcome"] == "answered"
    else:
        assert problem(answered) == (410, "request_cancelled")
        assert withdrawn.json()["outcome"] == "cancelled"
    assert await sql.fetchval("SELECT count(*) FROM feedback WHERE ct IS NOT NULL") == 0


async def test_the_same_joins_and_another_is_a_duplicate(api: Api, asker: Asker):
    first = await asker.ask(api.client, timeout_seconds=60)
    assert await asker.ask(api.client, timeout_seconds=60) == first
    for other in (
        asker.body(timeout_seconds=61),
        asker.body(timeout_seconds=60, message_for_user="Another?"),
        asker.body(timeout_seconds=60, kind="secret"),
        Asker().body(timeout_seconds=60),
        {"unique_id": "f-1", "message_for_user": "Which code?", "timeout_seconds": 60, "wait": True},
    ):
        assert problem(await api.post("/human-feedback", other)) == (409, "duplicate_request")
    assert len((await api.client.get(PENDING)).json()["requests"]) == 1


async def test_an_id_is_used_for_an_hour(api: Api, sql: Any, asker: Asker):
    for how in ENDS:
        await ended(api, sql, asker, how, how)
        for body in (asker.body(how), Asker().body(how)):
            assert problem(await api.post("/human-feedback", body)) == (409, "request_id_used"), how
    await sql.execute("UPDATE feedback SET ended_at = ended_at - interval '59 min 30 s', expires_at = now()")
    for how in ENDS:
        assert problem(await api.post("/human-feedback", asker.body(how))) == (409, "request_id_used")
    await sql.execute("UPDATE feedback SET ended_at = ended_at - interval '31 s'")
    anew = Asker()
    for how in ENDS:
        await anew.ask(api.client, how)
        assert (await submit(api.client, "111111", how)).status_code == 200
        assert anew.open(await answer(api.client, how), how) == "111111"


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("timeout_seconds", {"timeout_seconds": 4}),
    ("timeout_seconds", {"timeout_seconds": 1801}),
    ("timeout_seconds", {"timeout_seconds": "300"}),
    ("unique_id", {"unique_id": "a b"}),
    ("message_for_user", {"message_for_user": ""}),
    ("message_for_user", {"message_for_user": "x" * 4001}),
    ("kind", {"kind": "number"}),
    ("options", {"options": []}),
    ("options", {"options": ["a", "a"]}),
    ("options", {"options": [""]}),
    ("options", {"options": ["x" * 201]}),
    ("options", {"options": [str(number) for number in range(21)]}),
    ("options", {"kind": "text", "options": ["a"]}),
    ("yes_label", {"yes_label": "Go"}),
    ("public_key", {"public_key": None}),
    ("public_key", {"public_key": "%"}),
    ("public_key", {"public_key": "AAAA"}),
    ("public_key", {"public_key": "A" * 43 + "="}),
    ("public_key", {"wait": True}),
    ("wait", {"wait": 1}),
]


async def test_a_question_that_breaks_a_rule_is_not_asked(api: Api, asker: Asker):
    for field, fields in WRONG:
        reply = await api.post("/human-feedback", asker.body() | fields)
        assert problem(reply) == (422, "invalid_field"), fields
        assert [each["field"] for each in reply.json()["errors"]] == [field]
    assert (await api.client.get(PENDING)).json() == {"requests": []}


async def test_a_key_asks_no_more_than_a_thousand_at_once(api: Api, sql: Any, asker: Asker):
    await sql.execute(
        "INSERT INTO feedback (unique_id, owner, status, kind, message, public_key, created_at, expires_at,"
        " waiter_until) SELECT 'x-' || n, NULL, 'pending', 'text', 'm', decode(repeat('01', 32), 'hex'), now(),"
        " now() + interval '1 h', now() + interval '1 h' FROM generate_series(1, 999) AS n"
    )
    await asker.ask(api.client)
    refused = await api.post("/human-feedback", asker.body("f-2"))
    assert problem(refused) == (429, "too_many_questions")
    assert refused.headers["retry-after"]
    await asker.ask(api.client)  # joins
    assert (await submit(api.client, "482913")).status_code == 200
    await asker.ask(api.client, "f-2")


async def test_history_says_who_and_nothing_of_what(api: Api, sql: Any, asker: Asker):
    await asker.ask(api.client, **CHOICE)
    assert (await submit(api.client, "later")).status_code == 200
    await asker.ask(api.client, "f-2")
    await api.client.delete("/api/v1/human-feedback/f-2")
    kept = await sql.fetch("SELECT type, actor_kind, data::text FROM history WHERE type LIKE 'feedback.%' ORDER BY seq")
    assert [tuple(row) for row in kept] == [
        ("feedback.asked", "agent", '{"kind": "multiple_choice", "unique_id": "f-1"}'),
        ("feedback.answered", "person", '{"unique_id": "f-1"}'),
        ("feedback.asked", "agent", '{"kind": "text", "unique_id": "f-2"}'),
        ("feedback.cancelled", "agent", '{"unique_id": "f-2"}'),
    ]


async def test_clients_of_the_original_wire_are_served(api: Api, asker: Asker):
    await asker.ask(api.client)
    raw = b'{"unique_id": "f-1", "response": "482913"}'
    reply = await api.client.post(SUBMIT, content=raw, headers={"Content-Type": "application/json"})
    assert 200 <= reply.status_code < 300
    assert asker.open(await answer(api.client)) == "482913"
