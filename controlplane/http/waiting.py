"""Calls that wait: held in memory until an approval is final, without a database connection."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

from litestar import Request, post
from litestar.params import Parameter
from msgspec import Meta, Struct

from controlplane.domain.errors import DatabaseUnavailable, FieldFault
from controlplane.edge import bodies
from controlplane.edge.deps import (
    base_of,
    present,
    presented_of,
    reach_of,
    reads_for_agent,
    runtime_of,
    still_here,
)
from controlplane.http.shapes import StatusOut, status_of
from controlplane.runtime import Eyes
from controlplane.storage.approvals import Shown

MAX_SECONDS = 60
RETRY_SECONDS = 1.0
MAX_IDS = 10_000

Seconds = Annotated[float, Parameter(description="Seconds to wait for the end of the approval, 0 to 60.")]
ApprovalId = Annotated[str, Meta(min_length=1, max_length=64)]


class WaitIn(Struct, kw_only=True):
    """The approvals that a process waits for, all in one call."""

    approval_ids: Annotated[list[ApprovalId], Meta(min_length=1, max_length=MAX_IDS)]
    wait: float = 0


class WaitOut(Struct):
    """Those of the approvals that are final; none when the time has passed."""

    approvals: list[StatusOut]


@post("/approvals/wait", status_code=200, opt={"takes": WaitIn})
async def wait_for_any(request: Request[Any, Any, Any]) -> WaitOut:
    """Wait until one or more of these approvals are final: one call serves all pauses of a process."""
    body = await bodies.take(request, WaitIn)
    ended = await until_final(request, body.approval_ids, check(body.wait))
    return WaitOut([shape(request, shown) for shown in ended])


async def until_final(request: Request[Any, Any, Any], approval_ids: list[str], seconds: float) -> list[Shown]:
    """Those of the approvals that are final, once there is one or the time has passed.

    Past the limit of waiting calls the answer is immediate; nothing queues.
    """
    runtime = runtime_of(request)
    until = asyncio.get_running_loop().time() + seconds
    wait = runtime.waits.enter(approval_ids) if seconds else None
    if wait is None:
        return await _seen(request, approval_ids)
    with wait, runtime.keys.holding(presented_of(request), wait.wake):
        ended = await _seen(request, approval_ids)
        if ended:
            return ended
        async with present(request, wait):
            await wait.sleep(seconds)
    if wait.settled:
        return await _settled(request, wait.settled, until)
    # What it is told now was so when it came; that its key has ended meanwhile it is told where that can be known.
    with suppress(DatabaseUnavailable):
        await still_here(request)
    return []


async def _seen(request: Request[Any, Any, Any], approval_ids: list[str]) -> list[Shown]:
    """What is final, looked up for many callers at once, as far as this one may see it."""
    ends = runtime_of(request).ends
    seen = await ends.among(approval_ids, _eyes(request))
    if seen.more and reach_of(request).owner is not None:
        # Perhaps what it did not see is of a node that became its own since its key was read.
        await still_here(request, fresh=True)
        seen = await ends.among(approval_ids, _eyes(request))
    return seen.shown


def _eyes(request: Request[Any, Any, Any]) -> Eyes:
    reach = reach_of(request)
    return Eyes(lambda shown: reach.covers(shown.node_id), are_its_agents=reads_for_agent(request))


async def _settled(request: Request[Any, Any, Any], approval_ids: list[str], until: float) -> list[Shown]:
    """What is known to have ended; a database that is away for a moment does not cost a call that waited its answer."""
    while True:
        try:
            await still_here(request)
            return await _seen(request, approval_ids)
        except DatabaseUnavailable:
            late = asyncio.get_running_loop().time() + RETRY_SECONDS > until
            if runtime_of(request).stopping or late:
                raise
        await asyncio.sleep(RETRY_SECONDS)


def check(seconds: float) -> float:
    """The time of a wait, in seconds.

    Raises:
        FieldFault: it is not 0 to 60.
    """
    if not 0 <= seconds <= MAX_SECONDS:
        raise FieldFault("wait", f"must be a number of seconds from 0 to {MAX_SECONDS}")
    return seconds


def shape(request: Request[Any, Any, Any], shown: Shown) -> StatusOut:
    """Where an approval stands, as sent."""
    return status_of(shown, base_of(request))
