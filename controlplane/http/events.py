"""The live stream: every history row as a server-sent event, resumed without a gap."""

import base64
import binascii
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, get
from litestar.params import HeaderParameter, Parameter, QueryParameter
from litestar.response import Stream

from controlplane.domain.access import Access, Reach
from controlplane.domain.errors import DatabaseUnavailable, EventsPruned, FieldFault
from controlplane.domain.keys import Presented
from controlplane.edge import paging
from controlplane.edge.deps import looking, presented_of, reach_of, runtime_of
from controlplane.http.approvals import entry_out
from controlplane.runtime import Runtime
from controlplane.storage import history, pruning
from controlplane.storage.engine import Connection
from controlplane.storage.history import Entry, Position

BATCH = 500
KEEPALIVE_SECONDS = 15.0
LOOK_SECONDS = 1.0
BEGINNING = Position()

Text = Annotated[str | None, Parameter(max_length=paging.MAX_TEXT)]
LastEventId = Annotated[str | None, HeaderParameter(name="Last-Event-ID", max_length=256)]
From = Annotated[
    Literal["now"] | None, QueryParameter(name="from", description="`now`: only what happens from here on.")
]


class Held:
    """A stream that is open: what its reader may see by now, and whether their key has ended meanwhile."""

    def __init__(self, reach: Reach, presented: Presented | None) -> None:
        """Open."""
        self.reach = reach
        self.presented = presented
        self.ended = False

    def is_over(self) -> bool:
        """Whether nothing may be sent any more."""
        return self.ended

    def end(self) -> None:
        """The key is no good any more, or nothing more can be sent without a gap."""
        self.ended = True

    async def renew(self, runtime: Runtime) -> None:
        """Bring up to date what the reader may see: a node may have been moved to another key."""
        if self.presented is None:
            return
        principal = await runtime.keys.standing(self.presented)
        if principal is None:
            self.end()
        else:
            self.reach = principal.reach(Access.READ)


@get("/events", media_type="text/event-stream", opt={"refuses": [410]})
async def stream_events(
    request: Request[Any, Any, Any],
    execution_id: Text = None,
    types: Text = None,
    start: From = None,
    last_event_id: LastEventId = None,
) -> Stream:
    """Everything that happens, as it is committed; `Last-Event-ID` goes on where another stream ended."""
    runtime = runtime_of(request)
    wanted = tuple(filter(None, (paging.clean("types", types) or "").split(",")))
    execution = paging.clean("execution_id", execution_id)
    async with looking(request) as conn:
        if last_event_id:
            position = _position(last_event_id)
            if await _is_pruned(conn, position):
                raise EventsPruned
        else:
            position = await history.end(conn) if start == "now" else BEGINNING
    held = Held(reach_of(request), presented_of(request))
    body = _events(runtime, held, position, execution_id=execution, types=wanted)
    return Stream(
        body, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


async def _events(
    runtime: Runtime, held: Held, position: Position, *, execution_id: str | None, types: tuple[str, ...]
) -> AsyncIterator[bytes]:
    with runtime.keys.holding(held.presented, held.end):
        async for event in _read(runtime, held, position, execution_id=execution_id, types=types):
            yield event


async def _read(
    runtime: Runtime, held: Held, position: Position, *, execution_id: str | None, types: tuple[str, ...]
) -> AsyncIterator[bytes]:
    yield b": holdshort\n\n"
    quiet = 0.0
    while not runtime.stopping and not held.is_over():
        mark = runtime.news.mark
        end, entries = await _look(runtime, held, position, execution_id=execution_id, types=types)
        for entry in entries:
            if held.is_over():
                return
            position = Position(entry.xid, entry.seq)
            yield _event(entry)
        if len(entries) < BATCH:
            # Whatever lies before `end` was looked at: what the filters leave out is not looked at again.
            position = max(position, end, key=_order)
        if entries:
            quiet = 0.0
            continue
        if not await runtime.news.after(mark, LOOK_SECONDS):
            quiet += LOOK_SECONDS
        if quiet >= KEEPALIVE_SECONDS:
            quiet = 0.0
            yield b": still here\n\n"


async def _look(
    runtime: Runtime, held: Held, position: Position, *, execution_id: str | None, types: tuple[str, ...]
) -> tuple[Position, list[Entry]]:
    """The end of what there is now, and what follows a position; nothing while the database is away."""
    try:
        await held.renew(runtime)
        async with runtime.look(held.reach) as conn:
            end = await history.end(conn)
            entries = await history.after(conn, position, execution_id=execution_id, types=types, limit=BATCH)
            if position != BEGINNING and await _is_pruned(conn, position):
                held.end()  # some may be missing: whoever comes back with the last event's id is told so
            return end, entries
    except DatabaseUnavailable:
        return position, []


async def _is_pruned(conn: Connection, position: Position) -> bool:
    """Whether something that followed a place is not kept any more."""
    gone = await pruning.pruned_to(conn)
    return gone is not None and _order(position) < _order(gone)


def _order(position: Position) -> tuple[int, int]:
    return int(position.xid), position.seq


def _event(entry: Entry) -> bytes:
    place = base64.urlsafe_b64encode(f"{entry.xid}.{entry.seq}".encode()).decode()
    data = msgspec.json.encode(entry_out(entry)).decode()
    return f"id: {place}\nevent: {entry.type}\ndata: {data}\n\n".encode()


def _position(event_id: str) -> Position:
    try:
        xid, seq = base64.urlsafe_b64decode(event_id).decode("ascii").split(".")
        position = Position(str(int(xid)), int(seq))
    except (binascii.Error, ValueError):
        raise FieldFault("Last-Event-ID", "must be the id of an event of this stream") from None
    if not 0 <= int(position.xid) < 2**63 or not 0 <= position.seq < 2**63:
        raise FieldFault("Last-Event-ID", "must be the id of an event of this stream")
    return position
