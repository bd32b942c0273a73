"""Calls to the control plane that may be given up at any moment; each refusal with its code."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx

from controlplane.cli.faults import Fault

SECONDS = 10.0
GRACE_SECONDS = 15.0

Document = Mapping[str, Any]


class Refused(Fault):
    """The control plane said no.

    Args:
        code: its error's code, such as `request_expired`.
        message: its own sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Unreachable(Fault):
    """The control plane gave no answer; whether it did what it was asked is not known."""


class Gateway:
    """The routes under /api/v1 of one control plane; a call that is cancelled closes its connection.

    Args:
        url: its address.
        headers: what proves who calls.
    """

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._url = url.rstrip("/")
        everybody = httpx.Limits(max_connections=None, max_keepalive_connections=8)
        self._http = httpx.AsyncClient(headers=dict(headers), timeout=SECONDS, limits=everybody, trust_env=False)

    async def get(self, *path: str) -> Document:
        """Read a document.

        Args:
            path: the parts of its path.

        Raises:
            Refused: it said no.
            Unreachable: it cannot be reached.
        """
        return await self._call("GET", path, None, 0)

    async def post(self, *path: str, body: Document, wait: float = 0) -> Document:
        """Post a document and read the answer.

        Args:
            path: the parts of the route's path.
            body: what is sent; members that are None are left out.
            wait: seconds that the control plane may take before it answers, beside its usual time.

        Raises:
            Refused: it said no.
            Unreachable: it cannot be reached.
        """
        return await self._call("POST", path, {name: value for name, value in body.items() if value is not None}, wait)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def _call(self, method: str, path: tuple[str, ...], body: Document | None, wait: float) -> Document:
        url = "/".join([self._url, "api/v1", *(quote(part, safe="") for part in path)])
        timeout = httpx.Timeout(SECONDS, read=wait + GRACE_SECONDS)
        try:
            reply = await self._http.request(method, url, json=body, timeout=timeout)
            document = reply.json()
        except (httpx.HTTPError, httpx.InvalidURL) as fault:
            raise Unreachable(f"the control plane at {self._url} cannot be reached ({type(fault).__name__})") from fault
        except ValueError:
            raise Unreachable(f"{self._url} answered {reply.status_code} and no JSON; is it a control plane?") from None
        known = document if isinstance(document, dict) else {}
        if not reply.is_success:
            message = str(known.get("message", "the control plane gave no reason"))
            raise Refused(str(known.get("error", f"status_{reply.status_code}")), message)
        return known
