"""A page of the inbox as a browser without script has it: its forms, and the press of a button."""

from html.parser import HTMLParser
from typing import NamedTuple

import httpx

from controlplane.cli.demo.faults import NotSeen


class Form(NamedTuple):
    """A form: where it is sent, and the fields that it brings along."""

    action: str
    fields: dict[str, str]


class Page:
    """One page, followed from press to press.

    Args:
        http: sends what is pressed.
        base: the address of the control plane.
        path: the page's own.
    """

    def __init__(self, http: httpx.Client, base: str, path: str) -> None:
        self._http = http
        self._base = base
        self.text = ""
        self.status = 0
        self._take(http.get(f"{base}{path}", headers={"sec-fetch-site": "none"}))

    def press(self, action: str, **given: str) -> None:
        """Send the form whose address ends in `action`, with what a person typed and pressed, and take what follows.

        Raises:
            NotSeen: the page has no such form.
        """
        form = next((each for each in _forms(self.text) if each.action.partition("#")[0].endswith(action)), None)
        if form is None:
            raise NotSeen(f"expected a form for {action} on the page; found {self.status} {self.text[:200]}")
        url = httpx.URL(self._base).join(form.action.partition("#")[0])
        browser = {"origin": self._base, "sec-fetch-site": "same-origin"}
        reply = self._http.post(url, data={**form.fields, **given}, headers=browser)
        while reply.is_redirect:
            reply = self._http.get(reply.url.join(reply.headers["location"]), headers={"sec-fetch-site": "same-origin"})
        self._take(reply)

    def _take(self, reply: httpx.Response) -> None:
        self.text, self.status = reply.text, reply.status_code


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep forms and their hidden fields."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), {}))
        elif tag == "input" and given.get("type") == "hidden" and self.forms and given.get("name"):
            self.forms[-1].fields[given["name"]] = given.get("value", "")


def _forms(text: str) -> list[Form]:
    reader = _Reader()
    reader.feed(text)
    return reader.forms
