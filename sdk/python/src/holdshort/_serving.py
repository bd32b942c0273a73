"""Serving an agent with uvicorn: what waits is handed back first, what runs may finish."""

import contextlib
import ipaddress
import logging
import socket
from typing import TYPE_CHECKING

from holdshort._errors import MissingExtra
from holdshort._origin import is_here

try:
    import uvicorn
except ImportError as missing:
    raise MissingExtra("app.run() needs an ASGI server: pip install 'holdshort[agent]'") from missing

if TYPE_CHECKING:
    from holdshort._agent import Agent


log = logging.getLogger("holdshort")


class _Server(uvicorn.Server):
    """Tells the agent its own address at the start, and to hand back what waits before requests are drained."""

    def __init__(self, config: uvicorn.Config, agent: "Agent", drain_seconds: float) -> None:
        super().__init__(config)
        self._agent = agent
        self._drain_seconds = drain_seconds
        agent.asgi.lifetime.waits_for_server = True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for listening in server.sockets:
                self._reachable(*listening.getsockname()[:2])
        if self._agent.base_url is None:
            log.warning("give a callback_url: without one the control plane does not know where to reach this agent")
        self._agent.asgi.lifetime.listens()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._agent.asgi.lifetime.begin_to_end(self._drain_seconds)
        await super().shutdown(sockets)

    def _reachable(self, host: str, port: int) -> None:
        """Tell the agent its address, where that is the same for a control plane on this machine."""
        address = ipaddress.ip_address(host)
        if not (address.is_loopback or address.is_unspecified) or not is_here(self._agent.control_plane_url):
            return
        if address.is_unspecified:
            host = "::1" if address.version == 6 else "127.0.0.1"
        named = f"[{host}]" if address.version == 6 else host
        self._agent.reachable_at(f"http://{named}:{port}")


def serve(agent: "Agent", host: str, port: int, drain_seconds: int) -> None:
    """Serve until SIGTERM or Ctrl-C; see Agent.run."""
    server = server_for(agent, host, port, drain_seconds)
    with contextlib.suppress(KeyboardInterrupt):
        server.run()


def server_for(agent: "Agent", host: str, port: int, drain_seconds: int) -> uvicorn.Server:
    """The server that `serve` runs."""
    config = uvicorn.Config(
        agent.asgi,
        host=host,
        port=port,
        lifespan="on",
        log_level="info",
        access_log=False,
        timeout_graceful_shutdown=drain_seconds,
    )
    return _Server(config, agent, drain_seconds)
