"""Calls to a running control plane, for the commands that look and decide; each fault as a sentence."""

import os
import ssl
from collections.abc import Mapping
from functools import cache
from typing import Any

import click
import httpx

from controlplane.cli.faults import Fault, WrongUsage
from controlplane.domain import keys
from controlplane.domain.errors import FieldFault, InvalidKey, NotAllowed, NotAuthenticated
from controlplane.domain.ids import check_name

KEY_VARIABLE = "HOLDSHORT_API_KEY"
DEFAULT_URL = "http://127.0.0.1:8080"
SECONDS = 10.0
_NONE = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
PASSING = frozenset({429, 502, 503, 504})
ABOUT_THE_KEY = {
    NotAuthenticated.code: f"set {KEY_VARIABLE}; `holdshort keys create` makes a key",
    InvalidKey.code: f"the key that {KEY_VARIABLE} holds was sent",
    NotAllowed.code: f"the key that {KEY_VARIABLE} holds was sent",
}

Document = Mapping[str, Any]


class ApiFault(Fault):
    """The control plane said no, or could not be reached; the message is its own sentence.

    Args:
        message: for people.
        passing: the same call may well work a little later.
    """

    def __init__(self, message: str, *, passing: bool = False) -> None:
        super().__init__(message)
        self.passing = passing


url_option = click.option(
    "--url", envvar="HOLDSHORT_URL", default=DEFAULT_URL, show_default=True, help="The control plane (HOLDSHORT_URL)."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Api:
    """The routes of one control plane, called with the key in HOLDSHORT_API_KEY where there is one.

    Args:
        url: its address.
        under: where its paths begin.

    Raises:
        WrongUsage: what the variable holds is no key.
    """

    def __init__(self, url: str, *, under: str = "/api/v1") -> None:
        self._url = url.rstrip("/")
        self._under = under
        self._headers = key_headers()

    def get(self, path: str, **query: str | int | None) -> Document:
        """Read a document; a query value that is None is left out.

        Raises:
            ApiFault: the control plane cannot be reached, or refused.
        """
        return self._call("GET", path, params={name: value for name, value in query.items() if value is not None})

    def page(self, path: str, member: str, **query: str | int | None) -> Document:
        """Read a page whose rows are in `member`.

        Raises:
            ApiFault: as `get`, or what answered has no such rows.
        """
        found = self.get(path, **query)
        if not isinstance(found.get(member), list):
            raise ApiFault(f"{self._url} answered without {member}; is it a control plane?")
        return found

    def post(self, path: str, body: Document, **headers: str) -> Document:
        """Post a document and read the answer.

        Raises:
            ApiFault: as `get`.
        """
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._call("POST", path, named, json=dict(body))

    def _call(self, method: str, path: str, headers: Mapping[str, str] | None = None, **rest: Any) -> Document:
        sent = {**self._headers, **(headers or {})}
        url = f"{self._url}{self._under}{path}"
        try:
            reply = httpx.request(
                method, url, headers=sent, timeout=SECONDS, trust_env=False, verify=trusted(url), **rest
            )
            document = reply.json()
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            why = f"{self._url} cannot be reached ({fault}); is it running? --url names another"
            raise ApiFault(why, passing=True) from fault
        except ValueError:
            raise ApiFault(f"{self._url} answered {reply.status_code} without JSON; is it a control plane?") from None
        if not reply.is_success:
            raise ApiFault(_sentence(reply.status_code, document), passing=reply.status_code in PASSING)
        return document if isinstance(document, dict) else {}


def trusted(url: str) -> ssl.SSLContext:
    """Whose certificates are trusted at an address; nobody's need be over plain HTTP, and reading them takes 40 ms."""
    return _certificates() if url.lower().startswith("https:") else _NONE


@cache
def _certificates() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)


def key_headers() -> dict[str, str]:
    """What proves who calls: the key in HOLDSHORT_API_KEY as a header, or nothing where there is none.

    Raises:
        WrongUsage: what the variable holds is no key.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if not key:
        return {}
    if keys.read(key) is None:
        raise WrongUsage(f"{KEY_VARIABLE} holds no key as `holdshort keys create` prints it; copy it anew, or unset it")
    return {"X-API-Key": key}


def _sentence(status: int, document: Any) -> str:
    known = document if isinstance(document, dict) else {}
    said = f"{known.get('error', 'refused')} ({status}): {known.get('message', 'the control plane gave no reason')}"
    if str(known.get("error")) in ABOUT_THE_KEY:
        return f"{said}\n{ABOUT_THE_KEY[known['error']]}"
    registered = known.get("registered")
    if not isinstance(registered, list):
        return said
    return f"{said}\nregistered: {', '.join(map(str, registered)) or 'nothing'}"


def segment(name: str, parameter: str) -> str:
    """An id as a part of a path.

    Args:
        name: as it was typed.
        parameter: the command's word for it, such as EXECUTION_ID.

    Raises:
        click.BadParameter: no execution or node can have this id.
    """
    try:
        found = check_name(parameter, name)
    except FieldFault as fault:
        raise click.BadParameter(fault.rule, param_hint=parameter) from fault
    if not name.strip("."):
        raise click.BadParameter("must not be of dots only", param_hint=parameter)
    return found
