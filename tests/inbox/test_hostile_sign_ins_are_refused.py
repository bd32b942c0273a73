"""Whatever bytes come as a form, a cookie, a token or a way back: an answer that refuses, never a fault of ours."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_from_bytes

from tests.app import Api
from tests.figures import Figures
from tests.inbox.person import COOKIE, Person
from tests.keys import Keys

ROUNDS = 1_000
PIECES = [
    b"key=",
    b"next=",
    b"csrf=",
    b"&",
    b"&&",
    b"=",
    b";",
    b"%",
    b"%0",
    b"%00",
    b"%0d%0a",
    b"%ff",
    b"%c0%80",
    b"%ed%a0%80",
    b"%f0%9f%92%a9",
    b"+",
    b"\x00",
    b"\r\n",
    b"\xff\xfe",
    b"/inbox",
    b"//",
    b"..",
    b"<script>",
    b"{{7*7}}",
    b"' OR 1=1 --",
    b"hs_",
    b"hs_000000000000_",
    b"a" * 300,
    "é\u2028\u202e".encode(),
]
HEADERS = ("Cookie", "Origin", "Sec-Fetch-Site", "X-CSRF-Token", "Content-Type", "Referer", "X-Forwarded-Proto")
PATHS = ("/inbox/sign-in", "/inbox/sign-out", "/inbox/apr_0/decision", "/inbox/feedback/q/answer")


def some(draw: random.Random) -> bytes:
    return b"".join(draw.choice(PIECES) for _ in range(draw.randrange(1, 12)))


def value(draw: random.Random) -> bytes:
    """As a header may hold it: the server itself refuses line ends and NUL before any of us sees them."""
    return bytes(byte for byte in some(draw) if byte not in b"\x00\r\n").strip()


def hostile(draw: random.Random, person: Person) -> Iterator[tuple[str, str, dict[str, Any], bytes]]:
    for _ in range(ROUNDS):
        headers = person._headers() | {
            "Origin": person.origin,
            "X-CSRF-Token": person.token,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        for name in draw.sample(HEADERS, draw.randrange(0, 3)):
            headers[name] = value(draw)
        if draw.random() < 0.3:
            headers["Cookie"] = f"{COOKIE}=".encode() + value(draw)
        body = b"" if draw.random() < 0.1 else some(draw)
        path = draw.choice(PATHS)
        if draw.random() < 0.3:
            yield "GET", f"/inbox/sign-in?next={quote_from_bytes(some(draw), safe='/?=&%+')}", headers, b""
        else:
            yield "POST", path, headers, body


async def test_nothing_that_is_sent_is_a_fault_of_ours(guarded: Api, keys: Keys, ann: Person, figures: Figures):
    draw = random.Random(5)
    statuses: Counter[int] = Counter()
    for method, path, headers, body in hostile(draw, ann):
        reply = await guarded.client.request(method, path, headers=headers, content=body)
        assert reply.status_code < 500, (method, path, headers, body, reply.text)
        assert reply.status_code != 200 or method == "GET" or "/inbox/feedback" in path, (path, headers, body)
        assert "<script>" not in reply.text.replace('<script type="module"', "")
        assert "49" not in reply.headers.get("location", "")
        statuses[reply.status_code] += 1
        if path == "/inbox/sign-out" and reply.status_code == 303 and "set-cookie" in reply.headers:
            await ann.sign_in(keys.review)
    figures("hostile sign-ins", requests=ROUNDS, **{str(status): count for status, count in sorted(statuses.items())})
    assert statuses.keys() >= {303, 400, 403, 415}
