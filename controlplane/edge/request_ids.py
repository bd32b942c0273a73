"""Every answer carries a request id, the caller's own where it is sane, and every log line behind it has the same."""

import re
from collections.abc import Callable

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from controlplane import telemetry
from controlplane.domain import redaction

HEADER = b"x-request-id"
_SANE = re.compile(rb"[A-Za-z0-9._:-]{1,128}")


class RequestIds:
    """Wraps an ASGI application; cheap, as it touches the first message of an answer only."""

    def __init__(self, app: ASGIApp, new_id: Callable[[], str]) -> None:
        """Wrap `app`; `new_id` makes an id for a request that brings none."""
        self._app = app
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request under its id."""
        request_id = self._id_of(scope)
        header = (HEADER, request_id.encode())

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], header]
            await send(message)

        with telemetry.context(request_id=request_id):
            await self._app(scope, receive, send_with_id)

    def _id_of(self, scope: Scope) -> str:
        given = [value for name, value in scope["headers"] if name.lower() == HEADER]
        if len(given) == 1 and _SANE.fullmatch(given[0]):
            sent = given[0].decode()
            if redaction.masked(sent) == sent:  # what looks like a secret is no id
                return sent
        return self._new_id()
