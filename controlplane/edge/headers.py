"""What every answer says to browsers: show nothing, guess nothing, keep nothing, and let no other origin in unasked."""

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from controlplane.domain.door_errors import PreflightRefused
from controlplane.edge.cors import Cors
from controlplane.edge.errors import MEDIA_TYPE, problem

SAFE: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (b"referrer-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class SafeHeaders:
    """Wraps an ASGI application: each answer gets the headers of `SAFE` that it does not set itself.

    A preflight (OPTIONS, or what would be one) is refused, and no origin is named that may read an answer, but where
    `cors` grants it.
    """

    def __init__(self, app: ASGIApp, cors: Cors) -> None:
        """Wrap `app`."""
        self._app = app
        self._cors = cors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        granted = self._cors.answer(scope)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = [*message["headers"], *granted]
                names = {name.lower() for name, _ in given}
                message["headers"] = [*given, *(header for header in SAFE if header[0] not in names)]
            await send(message)

        if scope.get("method") != "OPTIONS":
            await self._app(scope, receive, send_safely)
            return
        granted = self._cors.preflight(scope) or []
        await (_grant(send_safely) if granted else _refuse(send_safely))


async def _grant(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _refuse(send: Send) -> None:
    status, _, body = problem(PreflightRefused())
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})
