"""People at browsers in the world of canaries: every page of the inbox asked rightly, and in wrong ways."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from controlplane.domain.access import Access
from controlplane.domain.sessions import read
from controlplane.inbox.routes import TABLE
from tests.security.canaries import LEAST, Aviary
from tests.security.places import IN_ANSWERS
from tests.security.planting import Answer, Caller
from tests.security.recipes import Ids

COOKIE = "__Host-holdshort"
FORM = "application/x-www-form-urlencoded"
_PLACE = re.compile(r"\{(\w+):str\}")
_SET = re.compile(rf'{COOKIE}="?([A-Za-z0-9_-]{{43}})"?;')
_TOKEN = re.compile(r'<meta name="csrf" content="([^"]+)">')
_SEEN = re.compile(r'name="(round|digest)" value="([^"]*)"')
_RUN = re.compile(rf"[A-Za-z0-9]{{{LEAST}}}")
Fields = Callable[[Aviary, Ids], dict[str, str]]
NOTHING: Fields = lambda *_: {}  # noqa: E731 - the shortest name for it

# What each page is sent rightly: its query, and the fields of its form. Whatever is typed comes back in a page.
SENT: dict[str, tuple[str, Fields]] = {
    "root": ("", NOTHING),
    "show_sign_in": ("next=/inbox/apr_0", NOTHING),
    "sign_in": ("", NOTHING),
    "static_file": ("", NOTHING),
    "sign_out": ("", NOTHING),
    "list_approvals": ("tab=all", NOTHING),
    "show_approval": ("", NOTHING),
    "list_executions": ("", NOTHING),
    "show_execution": ("", NOTHING),
    "list_nodes": ("", NOTHING),
    "show_status": ("", NOTHING),
    "stream": ("", NOTHING),
    "look_again": ("", NOTHING),
    "decide": (
        "",
        lambda a, _: {"verdict": "rejected", "confirmed": "rejected", "feedback": a.plant("feedback")},
    ),
    "show_question": ("", NOTHING),
    "answer_question": ("", lambda a, _: {"response": a.plant("answer"), "submission_id": a.plant("submission")}),
    "list_deliveries": ("", NOTHING),
    "redrive": ("", NOTHING),
}


class Page(NamedTuple):
    """A page as it is called: the name of its function, its method, its path, and whose key may ask it."""

    name: str
    method: str
    path: str
    scope: str

    def at(self, ids: Ids) -> str:
        """The path with values for its names."""
        known = ids._asdict() | {"name": "inbox.css"}
        return _PLACE.sub(lambda found: str(known[found[1]]), self.path)


class Signed(NamedTuple):
    """A session: what the browser keeps of it, and what its forms carry."""

    cookie: str
    token: str


def pages() -> list[Page]:
    """Every page of the table."""
    return [
        Page(handler.handler_name, method, path, "admin" if purpose is Access.ADMIN else "review")
        for purpose, handlers in TABLE.items()
        for handler in handlers
        for path in sorted(handler.paths)
        for method in sorted(handler.http_methods - {"OPTIONS"})
    ]


class Browser:
    """Asks a server for pages as people do; its answers are apart from those of programs.

    `spares` are sessions that are signed out of: one in each walk, and one in wrong ways.
    """

    def __init__(self, caller: Caller) -> None:
        self.caller = Caller(caller.aviary, caller.base, caller.held, caller.secret)
        self.aviary = caller.aviary
        self.sessions: dict[str, Signed] = {}
        self.spares: list[Signed] = []

    async def begin(self, walks: int) -> None:
        """Sign everybody in, while all is well."""
        self.sessions = {scope: await self.sign_in(scope) for scope in ("review", "admin")}
        self.spares = [await self.sign_in("review") for _ in range(walks + 1)]

    async def sign_in(self, scope: str) -> Signed:
        """Open a session; its cookie and its forms' token are secrets from here on.

        One without a long run of letters and digits in both is not used, as its ends alone would be found by chance.
        """
        while not all(map(_RUN.search, signed := await self._sign_in(scope))):
            pass
        secret = read(signed.cookie)
        assert secret is not None
        for text in (signed.cookie, secret.hex()):
            self.aviary.plant("session_cookie", text)
        self.aviary.plant("csrf_token", signed.token)
        return signed

    async def _sign_in(self, scope: str) -> Signed:
        answer = await self.send(f"sign_in as {scope}", "POST", "/inbox/sign-in", self._key(scope))
        found = _SET.search(answer.content.decode("latin-1"))
        assert found, answer
        page = await self.send("sign_in: a page", "GET", "/inbox", {}, Signed(found[1], ""))
        token = _TOKEN.search(page.content.decode())
        assert token, page
        return Signed(found[1], token[1])

    async def walk(self, ids: Ids, about: str, *, before: Any = None) -> Counter[int]:
        """Ask for each page rightly; the statuses."""
        seen: Counter[int] = Counter()
        for page in pages():
            if before is not None:
                await before()
            seen[(await self.good(page, ids, about)).status] += 1
        return seen

    async def good(self, page: Page, ids: Ids, about: str) -> Answer:
        """The request that a page is for."""
        query, fields = SENT[page.name]
        signed = self._session(page)
        sent = self._key(page.scope) if page.name == "sign_in" else fields(self.aviary, ids)
        who = None if page.name == "sign_in" else signed
        if page.name == "decide":
            sent |= await self._seen(ids, signed)
        return await self.send(f"{page.name} {about}", page.method, f"{page.at(ids)}?{query}", sent, who)

    async def _seen(self, ids: Ids, signed: Signed) -> dict[str, str]:
        """What the form of an approval says was seen; nothing where its page is not shown."""
        shown = await self.send("decide: its page", "GET", f"/inbox/{ids.approval_id}", {}, signed)
        return dict(_SEEN.findall(shown.content.decode()))

    async def bad(self, ids: Ids) -> None:
        """Every wrong way of asking for each page."""
        for page in pages():
            for about, headers, query, content in self._wrong(page):
                path = f"{page.at(ids)}?{SENT[page.name][0]}&{query}"
                sent = None if page.method == "GET" else content
                await self.caller.send(f"{page.name} {about}", page.method, path, headers, sent)
            behind = f"{page.at(ids)}/{self.aviary.plant('unknown')}"
            await self.send(f"{page.name} with a text behind it", "GET", behind, {}, self.sessions[page.scope])

    async def send(
        self, about: str, method: str, path: str, fields: dict[str, str], signed: Signed | None = None
    ) -> Answer:
        """A request as a page of ours makes it."""
        own = {} if signed is None or method == "GET" else {"csrf": signed.token}
        content = None if method == "GET" else urlencode(own | fields).encode()
        return await self.caller.send(about, method, path, self._headers(signed), content)

    def _session(self, page: Page) -> Signed:
        return self.spares.pop() if page.name == "sign_out" else self.sessions[page.scope]

    def _headers(self, signed: Signed | None) -> dict[str, str]:
        kept = {} if signed is None else {"Cookie": f"{COOKIE}={signed.cookie}"}
        return {"Origin": self.caller.base, "Content-Type": FORM} | kept

    def _key(self, scope: str) -> dict[str, str]:
        return {"key": self.caller.held[scope], "next": "/inbox"}

    def _wrong(self, page: Page) -> Iterator[tuple[str, dict[str, str], str, bytes]]:
        """What is sent, in headers, query and body: secrets where none belongs, and texts that are refused."""
        plant, held = self.aviary.plant, self.caller.held["admin"]
        signed = self._session(page)
        right = self._headers(signed)
        form = urlencode({"csrf": signed.token, "key": plant("no_key")}).encode()
        unknown = plant("unknown_cookie", "A" * 11 + plant("unknown")[:32])
        yield "signed out", self._headers(None), "", form
        yield "with a cookie of nobody", right | {"Cookie": f"{COOKIE}={unknown}"}, "", form
        yield "with a key for a cookie", right | {"Cookie": f"{COOKIE}={held}"}, "", form
        yield "with a cookie of another name", right | {"Cookie": f"session={signed.cookie}"}, "", form
        yield "with two cookies", right | {"Cookie": f"{right['Cookie']}; {COOKIE}={unknown}"}, "", form
        yield "from another origin", right | {"Origin": f"https://{plant('unknown')}.example"}, "", form
        yield "with another token", right, "", urlencode({"csrf": plant("wrong_token")}).encode()
        yield "with a key for a token", right | {"X-CSRF-Token": held}, "", b""
        yield "with the cookie for a token", right | {"X-CSRF-Token": signed.cookie}, "", b""
        yield "with a key in the query", right, f"key={held}", form
        yield "with a broken form", right, "", form + f"&%zz={plant('wrong_field')}".encode()
        yield "with a field twice", right, "", form + f"&{plant('wrong_field')}=1".encode() * 2
        yield "with another media type", right | {"Content-Type": f"text/{plant('unknown')}"}, "", form
        yield (
            "with secrets elsewhere",
            right | {"User-Agent": signed.cookie, "Referer": f"{self.caller.base}/?{held}", "X-Request-ID": held},
            "",
            form,
        )
        if page.method == "POST":
            yield "too large", right, "", form + f"&a={plant('wrong_field')}".encode() + b"x" * 1_100_000
            agents = {"key": self.caller.held["agent"]} if page.name == "sign_in" else {"csrf": plant("wrong_token")}
            yield "with an agent's key", right, "", urlencode(agents).encode()


def search(browser: Browser, report: Callable[..., None]) -> None:
    """Pages hold what they are there to show and the token of who reads them; only a sign-in gives a cookie."""
    for answer in browser.caller.answers:
        allowed = {"csrf_token"}
        if answer.status in {200, 409, 422}:
            allowed |= IN_ANSWERS
        if answer.status == 303 and answer.about.startswith("sign_in "):
            allowed |= {"session_cookie"}
        report(answer.about, answer.content, frozenset(allowed))


def check_statuses(browser: Browser, seen: Mapping[str, Counter[int]]) -> None:
    """Pages were asked so that they answer in every way that they can."""
    statuses = {answer.status for answer in browser.caller.answers}
    assert statuses >= {200, 303, 400, 401, 403, 404, 413, 415, 422, 500, 503}, statuses
    assert seen["connections killed, pages"][200] >= 10
    assert seen["tables gone, pages"][500] >= 5
    assert seen["database away, pages"][503] >= 10
