"""The serving process: uvicorn with caps and deadlines on what comes in, one process or several on one socket."""

from controlplane.cli.serving.application import serve_application
from controlplane.cli.serving.listening import AddressTaken, Listener, listen, on_loopback, url_of
from controlplane.cli.serving.server import FailedToStart
from controlplane.cli.serving.supervisor import supervise

__all__ = [
    "AddressTaken",
    "FailedToStart",
    "Listener",
    "listen",
    "on_loopback",
    "serve_application",
    "supervise",
    "url_of",
]
