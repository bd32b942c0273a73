"""Signing in opens one session for one browser; what was before it, beside it or behind it opens nothing."""

import re
from typing import Any

import pytest

from controlplane.domain.sessions import digest_of, read
from tests.app import Api
from tests.inbox.person import COOKIE, Person, signed_in, taken_cookie
from tests.keys import Keys

ATTRIBUTES = {"HttpOnly", "Secure", "Path=/", "SameSite=lax", "Max-Age=604800"}


async def history(sql: Any) -> list[tuple[Any, ...]]:
    rows = await sql.fetch(
        "SELECT type, actor_kind, actor_name, actor_via, actor_address, actor_id, data ->> 'why', data ->> 'session_id'"
        " FROM history WHERE type LIKE 'session.%' ORDER BY seq"
    )
    return [tuple(row) for row in rows]


async def test_the_cookie_is_for_our_pages_alone(guarded: Api, keys: Keys, sql: Any):
    ann = Person(guarded)
    reply = await ann.sign_in(keys.review)
    (header,) = reply.headers.get_list("set-cookie")
    value, *attributes = header.split("; ")
    assert value == f"{COOKIE}={ann.cookie}"
    assert set(attributes) == ATTRIBUTES
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", ann.cookie or "")
    secret = read(ann.cookie or "")
    assert secret is not None
    (row,) = await sql.fetch("SELECT * FROM sessions")
    assert row["digest"] == digest_of(secret)
    assert ann.cookie not in str(dict(row))
    page = await ann.get("/inbox")
    assert "set-cookie" not in page.headers
    assert ann.cookie not in page.text


async def test_no_two_sign_ins_give_the_same(guarded: Api, keys: Keys):
    people = [await signed_in(guarded, keys.review) for _ in range(5)]
    assert len({person.cookie for person in people}) == len({person.token for person in people}) == 5
    assert [(await person.get("/inbox")).status_code for person in people] == [200] * 5


async def test_history_says_who_came_and_went(guarded: Api, keys: Keys, sql: Any):
    ann = await signed_in(guarded, keys.review)
    await ann.post("/inbox/sign-out", {"name": "somebody else"})
    opened, ended = await history(sql)
    who = ("person", "review", "inbox", "127.0.0.1", keys.review.split("_")[1])
    assert (opened[0], *opened[1:6], opened[6]) == ("session.opened", *who, None)
    assert (ended[0], *ended[1:6], ended[6]) == ("session.ended", *who, "signed_out")
    assert opened[7] == ended[7]
    assert opened[7].startswith("ses_")


async def test_a_cookie_is_worth_nothing_after_signing_out(guarded: Api, keys: Keys, ann: Person):
    thief = Person(guarded)
    thief.cookie, thief.token = ann.cookie, ann.token
    reply = await ann.post("/inbox/sign-out", {})
    assert (reply.status_code, reply.headers["location"]) == (303, "/inbox/sign-in")
    assert f"{COOKIE}=" in reply.headers["set-cookie"]
    assert taken_cookie(reply) is None
    assert (await thief.get("/inbox")).status_code == 303
    assert (await thief.post("/inbox/sign-out", {})).status_code == 303
    assert (await (await signed_in(guarded, keys.review)).get("/inbox")).status_code == 200


async def test_a_planted_cookie_is_replaced_and_ended(guarded: Api, keys: Keys, sql: Any):
    """Whoever gives another person their own cookie shares nothing with them after the sign-in."""
    thief = await signed_in(guarded, keys.operator)
    ann = Person(guarded)
    ann.cookie = thief.cookie
    await ann.sign_in(keys.review)
    assert ann.cookie != thief.cookie
    assert (await thief.get("/inbox")).status_code == 303
    assert (await ann.get("/inbox")).status_code == 200
    ended = [row for row in await history(sql) if row[0] == "session.ended"]
    assert [(row[2], row[6]) for row in ended] == [("review", "replaced")]


@pytest.mark.parametrize("planted", ["A" * 43, "x", "", "é"])
async def test_a_cookie_of_nobody_is_never_taken_over(guarded: Api, keys: Keys, planted: str):
    ann = Person(guarded)
    ann.cookie = planted
    await ann.sign_in(keys.review)
    assert ann.cookie not in {planted, None}
    assert (await ann.get("/inbox")).status_code == 200


async def test_two_tabs_share_a_session_until_one_signs_in_anew(guarded: Api, keys: Keys, ann: Person):
    old_token = ann.token
    await ann.load()
    assert ann.token == old_token
    await ann.sign_in(keys.review)  # in the second tab: the browser now sends the new cookie from both
    stale = await ann.post("/inbox/sign-out", {}, token=old_token)
    assert stale.status_code == 403
    assert "load its page again" in stale.text
    assert (await ann.get("/inbox")).status_code == 200


async def test_who_is_signed_in_goes_on_at_once(guarded: Api, ann: Person):
    reply = await ann.get("/inbox/sign-in?next=/inbox/apr_1")
    assert (reply.status_code, reply.headers["location"]) == (303, "/inbox/apr_1")


async def test_an_agents_key_signs_nobody_in(guarded: Api, keys: Keys, sql: Any):
    reply = await Person(guarded).sign_in(keys.agent)
    assert reply.status_code == 403
    assert "This is an agent&#39;s key, which asks and never decides" in reply.text
    assert "set-cookie" not in reply.headers
    assert await sql.fetchval("SELECT count(*) FROM sessions") == 0


async def test_what_signs_nobody_in_is_said_and_never_shown(guarded: Api, keys: Keys, sql: Any):
    wrong = keys.review[:-1] + ("0" if keys.review[-1] != "0" else "1")
    for key, status in ((wrong, 401), ("hs_", 401), ("<script>alert(1)</script>", 401), (" ", 422), ("", 422)):
        reply = await Person(guarded).sign_in(key)
        assert reply.status_code == status, key
        assert "set-cookie" not in reply.headers
        assert len(key) < 4 or key not in reply.text
        assert "<form" in reply.text
    assert (await Person(guarded).sign_in(f"  {keys.review}\n")).status_code == 303
    assert await sql.fetchval("SELECT count(*) FROM sessions") == 1


async def test_many_wrong_keys_are_told_to_wait_and_a_right_one_never_is(guarded: Api, keys: Keys):
    stranger = Person(guarded)
    replies = [await stranger.post("/inbox/sign-in", {"key": f"wrong{number}"}, token=None) for number in range(61)]
    assert {reply.status_code for reply in replies[:60]} == {401}
    assert replies[60].status_code == 429
    assert 1 <= int(replies[60].headers["retry-after"]) <= 60
    assert "Too many wrong keys" in replies[60].text
    assert (await guarded.client.get("/api/v1/approvals", headers={"X-API-Key": "wrong"})).status_code == 429
    ann = await signed_in(guarded, keys.review)
    assert (await ann.get("/inbox")).status_code == 200


async def test_old_cookies_are_never_told_to_wait(guarded: Api, keys: Keys):
    stranger = Person(guarded)
    for number in range(70):
        stranger.cookie = f"{number:A>43}"
        assert (await stranger.get("/inbox")).status_code == 303
    assert (await (await signed_in(guarded, keys.review)).get("/inbox")).status_code == 200


async def test_a_key_in_an_address_is_refused_before_anything(guarded: Api, keys: Keys, ann: Person):
    for path in ("/inbox", "/inbox/sign-in", "/inbox/apr_0", "/inbox/static/inbox.css", "/inbox/no/such"):
        reply = await ann.get(f"{path}?key={keys.review}")
        assert reply.status_code == 400, path
        assert keys.review not in reply.text
        assert keys.review not in str(reply.headers)
    by_path = await ann.get(f"/inbox/{keys.review}")
    assert (by_path.status_code, keys.review in by_path.text) == (400, False)
