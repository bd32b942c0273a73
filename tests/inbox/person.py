"""A person at a browser: signs in with a key, keeps the cookie, and sends forms as pages do."""

import re
from collections.abc import Mapping
from typing import Any

import httpx

from tests.app import Api

COOKIE = "__Host-holdshort"
_META = re.compile(r'<meta name="csrf" content="([^"]+)">')
_SET = re.compile(rf'{COOKIE}="?([^;"]*)"?;')


class Person:
    """Sends what a browser would; `cookie` is what it keeps, None before it signed in."""

    def __init__(self, api: Api, *, origin: str | None = None) -> None:
        self.api = api
        self.cookie: str | None = None
        self.token = ""
        self.origin = origin or api.base

    async def sign_in(self, key: str, **fields: str) -> httpx.Response:
        """Send the form; take the cookie that came back, and the token of a page."""
        reply = await self.post("/inbox/sign-in", {"key": key, **fields}, token=None)
        taken = taken_cookie(reply)
        if taken:
            self.cookie = taken
            await self.load()
        return reply

    async def load(self) -> None:
        """Take the token from a page."""
        found = _META.search((await self.get("/inbox")).text)
        assert found
        self.token = found[1]

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.api.client.get(path, headers=self._headers() | headers, follow_redirects=False)

    async def post(
        self,
        path: str,
        fields: Mapping[str, Any] | bytes = b"",
        *,
        token: str | None = "mine",
        **headers: str,
    ) -> httpx.Response:
        """Send a form; `token` replaces this person's own, None sends none."""
        sent = self._headers() | {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"} | headers
        if isinstance(fields, bytes):
            content = fields
        else:
            own = {} if token is None else {"csrf": self.token if token == "mine" else token}
            content = str(httpx.QueryParams({**own, **fields})).encode()
        return await self.api.client.post(path, content=content, headers=sent, follow_redirects=False)

    def _headers(self) -> dict[str, Any]:
        # As bytes: what is sent may be no text.
        return {} if self.cookie is None else {"Cookie": f"{COOKIE}={self.cookie}".encode("latin-1")}


def taken_cookie(reply: httpx.Response) -> str | None:
    """The session's cookie that a reply sets; None where it sets none or takes it away."""
    found = [_SET.match(each) for each in reply.headers.get_list("set-cookie")]
    return next((each[1] for each in found if each and each[1]), None)


async def signed_in(api: Api, key: str) -> Person:
    """Somebody who has signed in."""
    person = Person(api)
    reply = await person.sign_in(key)
    assert (reply.status_code, reply.headers["location"]) == (303, "/inbox"), reply.text
    return person
