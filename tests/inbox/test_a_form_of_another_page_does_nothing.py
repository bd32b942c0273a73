"""A form counts only when a page of ours sent it: where the browser says from, which media type, and one reading."""

from typing import Any

import pytest

from tests.app import Api, in_process
from tests.figures import Figures
from tests.inbox.person import Person, signed_in
from tests.keys import Keys, keep_keys
from tests.postgres import Database

PUBLIC = "https://ops.example/holdshort"
OURS = [
    {"Origin": "http://127.0.0.1"},
    {"Origin": "http://127.0.0.1:80"},
    {"Origin": "https://ops.example"},
    {"Origin": "https://ops.example:443"},
    {"Origin": "https://ops.example", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "same-origin"},
]
FOREIGN = [
    {},
    {"Origin": "null"},
    {"Origin": ""},
    {"Origin": "null", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://ops.example"},
    {"Origin": "https://ops.example:8443"},
    {"Origin": "https://ops.example.evil.example"},
    {"Origin": "https://ops.example@evil.example"},
    {"Origin": "https://evil.example/ops.example"},
    {"Origin": "https://127.0.0.1"},
    {"Origin": "http://localhost"},
    {"Origin": "http://127.0.0.1:8080"},
    {"Origin": "http://127.0.0.1:99999"},
    {"Origin": "http://[::1"},
    {"Origin": "ops.example"},
    {"Origin": "file://ops.example"},
    {"Origin": "https://ops.example, https://evil.example"},
    {"Origin": "https://ops.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://ops.example", "Sec-Fetch-Site": "same-site"},
    {"Origin": "https://ops.example", "Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin, cross-site"},
    {"Sec-Fetch-Site": ""},
    {"Referer": "https://ops.example/holdshort/inbox"},
]
OTHER_MEDIA = [
    "",
    "text/plain",
    "application/json",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded; charset=utf-16",
    "application/x-www-form-urlencoded, text/plain",
]
TWO_READINGS = {
    "a broken escape": b"a=%zz",
    "a cut escape": b"a=%4",
    "no UTF-8": b"a=%ff",
    "raw bytes that are no UTF-8": b"a=\xff",
    "half of a surrogate pair": b"a=%ed%a0%80",
    "an overlong slash": b"a=%c0%af",
    "a NUL": b"a=%00",
    "a NUL in a name": b"a%00=1",
    "a raw NUL": b"a=\x00",
    "a field twice": b"a=1&a=2",
    "a field twice, once escaped": b"a=1&%61=2",
    "too many fields": b"&".join(b"f%d=" % number for number in range(2_001)),
}


@pytest.fixture
async def person(database: Database, keys: Keys) -> Any:
    async with in_process(database, public_url=PUBLIC) as api:
        person = Person(api)
        assert (await person.sign_in(keys.operator)).status_code == 303
        yield person


async def send(person: Person, headers: dict[str, str], content: bytes | None = None, media: str | None = None) -> Any:
    """A form with exactly these headers, and otherwise as it should be."""
    body = f"csrf={person.token}".encode() if content is None else content
    kind = {"Content-Type": "application/x-www-form-urlencoded" if media is None else media}
    sent = person._headers() | kind | headers
    return await person.api.client.post("/inbox/sign-out", content=body, headers=sent)


async def is_signed_in(person: Person) -> bool:
    return (await person.get("/inbox")).status_code == 200


async def test_a_form_from_elsewhere_changes_nothing(person: Person, figures: Figures):
    for headers in FOREIGN:
        reply = await send(person, headers)
        assert reply.status_code == 403, (headers, reply.status_code)
        assert "not sent by a page of this server" in reply.text
        assert await is_signed_in(person), headers
    figures("origins that are not ours", tried=len(FOREIGN))


async def test_a_form_of_ours_is_taken(person: Person, keys: Keys):
    for headers in OURS:
        assert (await send(person, headers)).status_code == 303, headers
        assert not await is_signed_in(person), headers
        await person.sign_in(keys.operator)


async def test_a_form_is_sent_as_forms_are(person: Person):
    for media in OTHER_MEDIA:
        assert (await send(person, OURS[0], media=media)).status_code == 415, media
        assert await is_signed_in(person), media
    assert (await send(person, OURS[0], media="Application/X-WWW-Form-Urlencoded; charset=UTF-8")).status_code == 303


async def test_a_form_has_one_reading(person: Person):
    token = f"csrf={person.token}&".encode()
    for name, content in TWO_READINGS.items():
        reply = await send(person, OURS[0], token + content)
        assert reply.status_code == 400, (name, reply.status_code)
        assert await is_signed_in(person), name
    assert (await send(person, OURS[0], token + token)).status_code == 400
    assert (await send(person, OURS[0], b"a=1")).status_code == 403
    assert (await send(person, OURS[0], token + b"a=" + b"x" * 16_384)).status_code == 413
    assert await is_signed_in(person)


async def test_a_script_sends_the_token_as_a_header(person: Person):
    wrong = await send(person, OURS[-1] | {"X-CSRF-Token": person.token[:-1]}, b"")
    assert (wrong.status_code, wrong.json()["error"]) == (403, "form_stale")
    assert (await send(person, OURS[-1] | {"X-CSRF-Token": person.token}, b"")).status_code == 303


async def test_nobody_is_signed_in_by_another_page(guarded: Api, keys: Keys):
    """Or somebody would decide under another's name without knowing."""
    stranger = Person(guarded)
    body = {"key": keys.review}
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        reply = await stranger.post("/inbox/sign-in", body, token=None, **headers)
        assert reply.status_code == 403
        assert "set-cookie" not in reply.headers


async def test_in_open_mode_a_form_must_come_from_here(database: Database):
    async with in_process(database) as api:
        anybody = Person(api)
        approval = await api.asked()
        path = f"/inbox/{approval}/decision"
        for headers in ({"Origin": "null"}, {"Origin": "http://127.0.0.1:8080"}, {"Sec-Fetch-Site": "same-site"}):
            assert (await anybody.post(path, {}, token=None, **headers)).status_code == 403
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        silent = await api.client.post(path, content=b"verdict=approved&confirmed=approved", headers=form)
        assert (silent.status_code, "not sent by a page of this server" in silent.text) == (403, True)
        assert (await api.get(f"/approvals/{approval}")).json()["status"] == "pending"
        assert (await anybody.get("/inbox")).status_code == 200
        assert (await anybody.post(path, {}, token=None)).status_code not in {403, 500}


async def test_in_open_mode_the_host_is_this_machine(database: Database):
    async with in_process(database) as api:
        for path in ("/", "/inbox", "/inbox/sign-in", "/inbox/static/inbox.css", "/inbox/apr_0"):
            assert (await api.client.get(path, headers={"Host": "evil.example"})).status_code == 421
            assert (await api.client.get(path, headers={"X-Forwarded-For": "1.2.3.4"})).status_code == 403


async def test_once_there_is_a_key_what_stood_open_is_closed(database: Database):
    async with in_process(database) as api:
        anybody = Person(api)
        assert (await anybody.get("/inbox")).status_code == 200
        made = await signed_in_later(database, api)
        assert (await anybody.get("/inbox")).headers["location"] == "/inbox/sign-in"
        assert (await made.get("/inbox")).status_code == 200


async def signed_in_later(database: Database, api: Api) -> Person:
    keys = await keep_keys(database)
    await api.runtime.settle_access()
    return await signed_in(api, keys.review)
