"""One serving process: uvicorn on a given socket, with bounded requests and an end within seconds of SIGTERM.

uvicorn on uvloop and httptools holds a waiting call in about half of granian's memory (14 KiB against 30 KiB), and it
has no limit of waiting calls unless one is set, where granian stops at 1,024.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import uvicorn

from controlplane import telemetry
from controlplane.cli.faults import Fault
from controlplane.cli.serving.connections import DEFAULT_LIMIT, Connections
from controlplane.cli.serving.listening import BACKLOG, raise_file_limit
from controlplane.cli.serving.protocol import BoundedProtocol

DRAIN_SECONDS = 4
STOP_SECONDS = 6.0
KEEP_ALIVE_SECONDS = 65
# Files that a process needs beside those of its callers: connections to the database and to agents, and its own.
FILES_BESIDE = 512
LEAST_CONNECTIONS = 64

_log = telemetry.logger("serving")


class FailedToStart(Fault):
    """The application did not start; its own log line says why."""


def config_of(app: Any, *, connections: int = DEFAULT_LIMIT) -> uvicorn.Config:
    """How an application is served: our protocol, no header that names the server, nothing believed of proxies.

    Args:
        app: the ASGI application.
        connections: how many it may hold at once, see `Connections`.
    """
    others = Connections(connections)
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=partial(BoundedProtocol, others=others),  # type: ignore[arg-type]  # what it calls, it need not be a class
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Whose X-Forwarded-For is believed, `edge.deps.address_of` says.
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
    )


def serve(
    app: Any,
    server: socket.socket,
    *,
    closing: Callable[[], None] = lambda: None,
    connections: int = DEFAULT_LIMIT,
) -> None:
    """Serve until SIGTERM or SIGINT; what is in flight then has 4 s to end.

    Args:
        app: the ASGI application.
        server: the listening socket; closed at the end.
        closing: called when the end begins, so that the application may answer the calls that wait.
        connections: how many it may hold at once, as far as the files that the process may open allow it.

    Raises:
        FailedToStart: the application's start failed.
    """
    most = max(LEAST_CONNECTIONS, min(connections, raise_file_limit() - FILES_BESIDE))
    config = config_of(app, connections=most)
    try:
        _Server(config, closing).run(sockets=[server])
    except SystemExit as end:
        if end.code == uvicorn.config.STARTUP_FAILURE:
            raise FailedToStart("the server did not start; the log line above says why") from None
        raise


class _Server(uvicorn.Server):
    """uvicorn's server, which tells the application first when the end begins, and whose end has an end."""

    def __init__(self, config: uvicorn.Config, closing: Callable[[], None]) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer what waits, finish what runs, stop; within 6 s, come what may."""
        self._closing()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await super().shutdown(sockets)
        except TimeoutError:
            _log.error("shutdown_cut_off", seconds=STOP_SECONDS)
        # They were obeyed; raised again by uvicorn they would skip what the caller still has to stop.
        self._captured_signals.clear()
