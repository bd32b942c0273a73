import base64
import os
from typing import Any
from urllib.parse import unquote_plus

import httpx
import pytest

from controlplane.domain.sealing import Opener, Sealed
from tests.app import Api, problem
from tests.inbox.person import Person, signed_in
from tests.keys import Keys, sent

TYPED = "493021 & <b>bold</b> \u00e4\U0001f600"
MASKED = "a-masked-value-of-ann"


class Asker:
    """A program that asked, and can open the answer."""

    def __init__(self, api: Api, key: str) -> None:
        self.api = api
        self.key = key
        self.opener = Opener(os.urandom(32))

    async def ask(self, unique_id: str = "q-1", **fields: Any) -> None:
        body = {
            "unique_id": unique_id,
            "message_for_user": "Which code? See https://bank.example/codes\nand tell me.",
            "public_key": base64.b64encode(self.opener.public_key).decode(),
            **fields,
        }
        reply = await self.api.client.post("/api/v1/human-feedback", json=body, headers=sent(self.key))
        assert reply.status_code == 201, reply.text

    async def answer(self, unique_id: str = "q-1") -> str | None:
        path = f"/api/v1/human-feedback/{unique_id}/answer"
        reply = (await self.api.client.get(path, params={"wait": 0}, headers=sent(self.key))).json()
        if reply["outcome"] == "pending":
            return None
        sealed = Sealed(*(base64.b64decode(reply["sealed"][part]) for part in ("enc", "ct")))
        return self.opener.open(sealed, unique_id)

    async def withdraw(self, unique_id: str = "q-1") -> None:
        reply = await self.api.client.delete(f"/api/v1/human-feedback/{unique_id}", headers=sent(self.key))
        assert reply.status_code < 300, reply.text


@pytest.fixture
def asker(guarded: Api, keys: Keys) -> Asker:
    return Asker(guarded, keys.agent)


async def answer(person: Person, response: str, unique_id: str = "q-1", **more: str) -> httpx.Response:
    """Answer as a form without script does."""
    return await person.post(f"/inbox/feedback/{unique_id}/answer", {"response": response, **more})


async def by_script(person: Person, response: str, unique_id: str = "q-1", **more: str) -> httpx.Response:
    fields = {"response": response, **more}
    headers = {"X-CSRF-Token": person.token, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty"}
    return await person.post(f"/inbox/feedback/{unique_id}/answer", fields, **headers)


@pytest.mark.parametrize(
    ("asked", "said", "heard"),
    [
        ({}, TYPED, TYPED),
        ({"kind": "secret"}, MASKED, MASKED),
        ({"kind": "yes_no", "yes_label": "Do it", "no_label": "Stop"}, "yes", "yes"),
        ({"kind": "yes_no"}, "no", "no"),
        ({"options": ["red", "blue & green"]}, "blue & green", "blue & green"),
    ],
)
async def test_each_kind_is_answered_by_its_form(
    ann: Person, asker: Asker, asked: dict[str, Any], said: str, heard: str
):
    await asker.ask(**asked)
    reply = await answer(ann, said)
    assert (reply.status_code, reply.headers["location"]) == (303, "/inbox/feedback/q-1")
    after = await ann.get("/inbox/feedback/q-1")
    assert "Response submitted" in after.text
    if said in {TYPED, MASKED}:
        assert said not in unquote_plus(reply.text + str(reply.headers) + after.text)
    assert '<article class="card"' not in after.text
    assert await asker.answer() == heard


async def test_a_script_gets_a_document_without_the_answer(ann: Person, asker: Asker):
    await asker.ask()
    reply = await by_script(ann, TYPED)
    assert (reply.status_code, reply.json()) == (200, {"unique_id": "q-1", "status": "success"})
    assert await asker.answer() == TYPED


async def test_the_card_has_what_its_kind_takes(ann: Person, asker: Asker):
    await asker.ask("text", kind="text")
    await asker.ask("secret", kind="secret")
    await asker.ask("yes_no", kind="yes_no", no_label="Rather not <b>")
    await asker.ask("choice", options=["one & a half", "two"])
    pages = {one: (await ann.get(f"/inbox/feedback/{one}")).text for one in ("text", "secret", "yes_no", "choice")}
    for page in pages.values():
        assert '<a href="https://bank.example/codes" rel="noopener noreferrer">' in page
        assert 'autocomplete="off" data-answer' in page
    assert "<textarea" in pages["text"]
    assert 'type="text" class="masked" name="response"' in pages["secret"]
    assert 'autocomplete="one-time-code"' in pages["secret"]
    assert 'type="password"' not in pages["secret"]
    assert '<button name="response" value="yes">Yes</button>' in pages["yes_no"]
    assert '<button name="response" value="no">Rather not &lt;b&gt;</button>' in pages["yes_no"]
    assert '<button name="response" value="one &amp; a half">one &amp; a half</button>' in pages["choice"]


REFUSED = {
    "empty": ({}, "", 422, "invalid_answer"),
    "only spaces": ({}, " \n ", 422, "invalid_answer"),
    "no option": ({"options": ["red", "blue"]}, "green", 422, "invalid_answer"),
    "no yes and no no": ({"kind": "yes_no"}, "perhaps", 422, "invalid_answer"),
    "too long": ({}, "x" * (16 * 1024 + 1), 413, "body_too_large"),
    "much too long": ({}, "x" * (64 * 1024), 413, "body_too_large"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_what_is_no_answer_leaves_the_question_open(ann: Person, asker: Asker, case: str):
    asked, said, status, code = REFUSED[case]
    await asker.ask(**asked)
    assert problem(await by_script(ann, said)) == (status, code)
    assert (await answer(ann, said)).status_code == status
    assert await asker.answer() is None


async def test_a_refused_text_is_kept_and_a_secret_is_not(ann: Person, asker: Asker):
    too_long = TYPED + "x" * 16 * 1024
    await asker.ask("plain")
    kept = await answer(ann, too_long, "plain")
    assert kept.status_code == 413
    assert "493021 &amp; &lt;b&gt;bold&lt;/b&gt;" in kept.text
    await asker.ask("masked", kind="secret")
    dropped = await answer(ann, MASKED + "x" * 16 * 1024, "masked")
    assert dropped.status_code == 413
    assert MASKED not in unquote_plus(dropped.text + str(dropped.headers))
    assert "An answer has at most 16,384 bytes" in dropped.text


@pytest.mark.parametrize("kind", ["text", "secret"])
async def test_a_late_answer_is_told_why_and_shown_to_nobody(ann: Person, asker: Asker, sql: Any, kind: str):
    for end, status, code, words in (
        ("answered", 409, "already_answered", "Answered"),
        ("expired", 410, "request_expired", "Expired, nobody answered"),
        ("cancelled", 410, "request_cancelled", "Withdrawn"),
    ):
        await asker.ask(end, kind=kind)
        if end == "answered":
            await answer(ann, "the first", end)
        elif end == "expired":
            await sql.execute("UPDATE feedback SET expires_at = clock_timestamp() WHERE unique_id = 'expired'")
        else:
            await asker.withdraw(end)
        assert problem(await by_script(ann, MASKED, end)) == (status, code)
        late = await answer(ann, MASKED, end)
        assert (late.status_code, words in late.text) == (status, True), late.text
        assert MASKED not in late.text


async def test_the_same_submission_again_is_a_success_and_another_is_not(ann: Person, asker: Asker):
    await asker.ask()
    for _ in range(2):
        assert (await by_script(ann, "first", submission_id="s-1")).status_code == 200
    assert problem(await by_script(ann, "second", submission_id="s-2")) == (409, "already_answered")
    assert problem(await by_script(ann, "second")) == (409, "already_answered")
    assert problem(await by_script(ann, "second", submission_id="no id of ours")) == (422, "invalid_field")
    assert await asker.answer() == "first"


@pytest.mark.parametrize("unique_id", ["nobody-asked", "%00", "\u00e4", "a" * 129])
async def test_what_nobody_asked_is_not_found(ann: Person, unique_id: str):
    assert problem(await by_script(ann, "text", unique_id)) == (404, "request_not_found")
    assert (await answer(ann, "text", unique_id)).status_code == 404
    assert (await ann.get(f"/inbox/feedback/{unique_id}")).status_code == 404


async def test_only_whoever_may_review_answers(guarded: Api, keys: Keys, asker: Asker):
    await asker.ask()
    admin = await signed_in(guarded, keys.admin)
    assert (await answer(admin, "text")).status_code == 403
    assert (await admin.get("/inbox/feedback/q-1")).status_code == 403
    assert 'data-feedback="q-1"' not in (await admin.get("/inbox")).text
    assert await asker.answer() is None


async def test_history_names_who_answered_and_not_what(ann: Person, asker: Asker, sql: Any):
    await asker.ask()
    await answer(ann, MASKED)
    row = await sql.fetchrow(
        "SELECT actor_kind, actor_name, actor_via, data FROM history WHERE type = 'feedback.answered'"
    )
    assert tuple(row)[:3] == ("person", "review", "inbox")
    assert MASKED not in repr(row)
