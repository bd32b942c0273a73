"""Calls to a running control plane, for the commands that look and decide; each fault as a sentence."""

from collections.abc import Mapping
from typing import Any

import click
import httpx

from controlplane.cli.faults import Fault

DEFAULT_URL = "http://127.0.0.1:8080"
SECONDS = 10.0

Document = Mapping[str, Any]


class ApiFault(Fault):
    """The control plane said no, or could not be reached; the message is its own sentence."""


url_option = click.option(
    "--url", envvar="HOLDSHORT_URL", default=DEFAULT_URL, show_default=True, help="The control plane (HOLDSHORT_URL)."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


class Api:
    """The routes under /api/v1 of one control plane.

    Args:
        url: its address.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

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

    def post(self, path: str, body: Document) -> Document:
        """Post a document and read the answer.

        Raises:
            ApiFault: as `get`.
        """
        return self._call("POST", path, json=dict(body))

    def _call(self, method: str, path: str, **rest: Any) -> Document:
        try:
            reply = httpx.request(method, f"{self._url}/api/v1{path}", timeout=SECONDS, trust_env=False, **rest)
            document = reply.json()
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise ApiFault(f"{self._url} cannot be reached ({fault}); is it running? --url names another") from fault
        except ValueError:
            raise ApiFault(f"{self._url} answered {reply.status_code} without JSON; is it a control plane?") from None
        if not reply.is_success:
            raise ApiFault(_sentence(reply.status_code, document))
        return document if isinstance(document, dict) else {}


def _sentence(status: int, document: Any) -> str:
    known = document if isinstance(document, dict) else {}
    return f"{known.get('error', 'refused')} ({status}): {known.get('message', 'the control plane gave no reason')}"
