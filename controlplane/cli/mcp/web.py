"""Streamable HTTP, behind the door."""

import hmac
import socket

import click
import uvicorn
from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from controlplane.cli.faults import Fault
from controlplane.cli.mcp.door import Door

PATH = "/mcp"
LARGEST_BODY = 1024 * 1024
MOST_SESSIONS = 1000
DRAIN_SECONDS = 2


def serve(server: MCPServer[None], door: Door, port: int) -> None:
    """Serve until SIGTERM or SIGINT; prints the address once it listens.

    Raises:
        Fault: the address cannot be listened on.
    """
    listener = _listen(door.host, port)
    with listener:
        taken = listener.getsockname()[1]
        click.echo(f"http://{door.names[0]}:{taken}{PATH}")
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            max_request_body_size=LARGEST_BODY,
            max_sessions=MOST_SESSIONS,
            transport_security=_security(door, taken),
            host=door.host,
        )
        config = uvicorn.Config(
            Guarded(app, door.token),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        uvicorn.Server(config).run(sockets=[listener])


class Guarded:
    """Wraps an ASGI application: a request without the token is refused before anything reads it.

    Args:
        app: what is called with the others.
        token: what they show; nothing lets everybody through.
    """

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._proof = f"Bearer {token}".encode() if token else b""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http" or self._may(scope):
            await self._app(scope, receive, send)
            return
        body = b"Send the value of HOLDSHORT_MCP_TOKEN as `Authorization: Bearer`.\n"
        headers = [
            (b"www-authenticate", b"Bearer"),
            (b"content-type", b"text/plain; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
        ]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _may(self, scope: Scope) -> bool:
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        return not self._proof or (len(shown) == 1 and hmac.compare_digest(shown[0], self._proof))


def _security(door: Door, port: int) -> TransportSecuritySettings:
    hosts = [name if _has_port(name) else f"{name}:{port}" for name in door.names]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=[*hosts, *door.names], allowed_origins=origins)


def _has_port(name: str) -> bool:
    return name.rpartition("]")[2].rpartition(":")[2].isdecimal()


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as fault:
        raise Fault(f"cannot listen on {host}:{port}: {fault.strerror}") from fault
