"""Status: whether the database answers, whether the workers keep up, and what waits the longest."""

from datetime import datetime
from typing import Any

from litestar import Request, Response, get
from msgspec import Struct

from controlplane.inbox.deps import looking, viewer_of
from controlplane.inbox.present import lasting
from controlplane.inbox.rendering import page
from controlplane.services import diagnosis
from controlplane.storage import inbox_status
from controlplane.storage.inbox_status import Standing

# Workers look at least once a second; what waits longer than this for one says that none looks, or that all are busy.
LATE_SECONDS = 10.0


class Work(Struct, frozen=True, kw_only=True):
    """One kind of work: what it is, and since how long its oldest piece waits; `late` says that it should not."""

    name: str
    lag: str
    late: bool


@get("/inbox/status", include_in_schema=False)
async def show_status(request: Request[Any, Any, Any]) -> Response[str]:
    """How the whole stands; what a set-up lacks is for administrators."""
    async with looking(request) as conn:
        standing = await inbox_status.look(conn)
        found = await diagnosis.look(conn) if viewer_of(request).may("admin") else None
    return page(
        request,
        "status.html",
        standing=standing,
        work=_work(standing),
        found=found,
        waiting=standing.waiting,
        now=standing.at,
    )


def _work(standing: Standing) -> list[Work]:
    kinds = {
        "Ending what nobody answered": standing.overdue,
        "Telling agents": standing.delivery_due,
        "Giving runs to agents": standing.dispatch_due,
        "Sealing the history": standing.unsealed,
    }
    return [_kind(name, since, standing.at) for name, since in kinds.items()]


def _kind(name: str, since: datetime | None, now: datetime) -> Work:
    seconds = 0.0 if since is None else max(0.0, (now - since).total_seconds())
    late = seconds > LATE_SECONDS
    return Work(name=name, lag=f"{lasting(seconds)} behind" if late else "Up to date", late=late)
