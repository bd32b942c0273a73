"""The serving process: uvicorn with caps and deadlines on what comes in, one process or several on one socket."""

from controlplane.cli.serving.listening import listen
from controlplane.cli.serving.server import serve
from controlplane.cli.serving.supervisor import supervise

__all__ = ["listen", "serve", "supervise"]
