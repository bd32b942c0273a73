"""Whether the process lives, and whether decisions can be taken now."""

from typing import Any

from litestar import Request, get

from controlplane.domain.errors import DatabaseUnavailable
from controlplane.edge.deps import runtime_of
from controlplane.storage import clock


@get("/health/live", media_type="text/plain")
async def live() -> str:
    """The process answers."""
    return "live"


@get("/health/ready", media_type="text/plain")
async def ready(request: Request[Any, Any, Any]) -> str:
    """Decisions can be taken: the database answers and the process is not stopping."""
    runtime = runtime_of(request)
    if runtime.stopping:
        raise DatabaseUnavailable("The server is stopping; ask another replica.")
    async with runtime.transaction() as conn:
        await clock.now(conn)
    return "ready"
