"""What keeps a page live: a stream for whoever is signed in, and a look at what became of the approvals on a page."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.response import Stream

from controlplane.domain.door_errors import CrossOrigin
from controlplane.domain.errors import DatabaseUnavailable, FieldFault
from controlplane.domain.ids import names_approval
from controlplane.domain.keys import Scope
from controlplane.edge import paging
from controlplane.edge.deps import AnyRequest, runtime_of
from controlplane.inbox import telling
from controlplane.inbox.cards import card
from controlplane.inbox.deps import holding, looking, viewer_of
from controlplane.runtime import Runtime
from controlplane.runtime.desk import Draw, Told
from controlplane.storage import clock, inbox_lists, standing

HEARTBEAT_SECONDS = 15.0
AGAIN_SECONDS = 1.0
MOST_ASKED_FOR = 100
_NO_STORE = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Held:
    """A stream that is open: whether whoever reads it may see short-lived questions, and whether it has to end."""

    def __init__(self, runtime: Runtime, *, questions: bool) -> None:
        """Open."""
        self.runtime = runtime
        self.questions = questions
        self._ended = False

    @property
    def is_over(self) -> bool:
        """Whether nothing may be sent any more."""
        return self._ended or self.runtime.stopping

    def end(self) -> None:
        """The session or its key is no good any more."""
        self._ended = True
        self.runtime.desk.wake()

    def sees(self, told: Told) -> bool:
        """Whether something is for this reader."""
        return self.questions or not telling.is_about_questions(told.what)


@get("/inbox/events", media_type="text/event-stream", include_in_schema=False, opt={"script": True})
async def stream(request: Request[Any, Any, Any]) -> Stream:
    """What is asked and what ends, from now on; the first event says what is open, so that nothing is missed before.

    Raises:
        CrossOrigin: a browser says that another origin's page asks.
    """
    if any(site != "same-origin" for site in request.headers.getall("sec-fetch-site", [])):
        raise CrossOrigin
    held = Held(runtime_of(request), questions=viewer_of(request).may(Scope.REVIEW))
    return Stream(_events(request, held), media_type="text/event-stream", headers=_NO_STORE)


@get("/inbox/settled", include_in_schema=False, opt={"script": True})
async def look_again(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Which of the approvals that are named have ended, as the stream says it, for a page that may have missed it.

    Raises:
        FieldFault: more than 100 are named, or something that is no approval's id.
    """
    named = [part for part in request.query_params.get("ids", "").split(",") if part]
    if len(named) > MOST_ASKED_FOR or not all(map(_is_approval, named)):
        raise FieldFault("ids", f"must be at most {MOST_ASKED_FOR} ids of approvals, divided by commas")
    async with looking(request) as conn:
        found = await standing.among(conn, named)
    body = msgspec.json.encode([telling.settled(each) for each in found if each.final])
    return Response(body, media_type="application/json", headers=_NO_STORE)


async def _events(request: AnyRequest, held: Held) -> AsyncIterator[bytes]:
    desk = held.runtime.desk
    draw = telling.Pen(partial(card, request)).draw
    place: int | None = None
    with desk.reading(), holding(request, held.end):
        yield b"retry: 1000\n\n"
        while not held.is_over:
            if place is None:
                place, sent = await _first(held, draw)
            else:
                told = await desk.after(place, HEARTBEAT_SECONDS)
                place = None if told is None else place + len(told)
                sent = b"".join(each.drawn(draw) for each in told or () if held.sees(each))
            if not held.is_over:
                yield sent or telling.STILL_HERE


async def _first(held: Held, draw: Draw) -> tuple[int | None, bytes]:
    """A place, and what is open there with the cards of short-lived questions; neither while the database is away."""
    desk = held.runtime.desk
    place, cards = desk.place, dict(desk.standing) if held.questions else {}
    try:
        async with held.runtime.look() as conn:
            waiting, now = await inbox_lists.waiting(conn), await clock.now(conn)
    except DatabaseUnavailable:
        await desk.after(desk.place, AGAIN_SECONDS)
        return None, b""
    return place, telling.hello(now, waiting, list(cards)) + b"".join(each.drawn(draw) for each in cards.values())


def _is_approval(text: str) -> bool:
    return names_approval(text) and text.isascii() and text.isprintable() and len(text) <= paging.MAX_TEXT
