"""The stream of short-lived questions: first those that wait, then each as it is asked and as it ends."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, get
from litestar.params import QueryParameter
from litestar.response import Stream

from controlplane.domain.feedback import Question
from controlplane.domain.keys import Presented
from controlplane.edge.deps import presented_of, runtime_of
from controlplane.runtime import Asked, Change, Ear, Runtime

KEEPALIVE_SECONDS = 15.0
ASKED = "blocking_human_feedback"
RESOLVED = "human_feedback_resolved"


From = Annotated[
    Literal["now"] | None, QueryParameter(name="from", description="`now`: without those that wait already.")
]


@get("/api/human-feedback/events", media_type="text/event-stream")
async def stream_feedback(request: Request[Any, Any, Any], start: From = None) -> Stream:
    """Every question that waits for a person, from those that do now on, and how each ends; never an answer."""
    body = _events(runtime_of(request), presented_of(request), anew=start == "now")
    return Stream(
        body, media_type="text/event-stream", headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    )


async def _events(runtime: Runtime, presented: Presented | None, *, anew: bool) -> AsyncIterator[bytes]:
    with runtime.board.listening() as ear:
        over = _Over(ear)
        with runtime.keys.holding(presented, over.end):
            yield b": holdshort\n\n"
            # The board may have changed while that was sent: what it tells of a question twice is the same.
            for question in [] if anew else runtime.board.questions():
                yield _asked(question)
            async for event in _changes(runtime, ear, over.is_it):
                yield event


async def _changes(runtime: Runtime, ear: Ear[Change], is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
    while not runtime.stopping and not is_over():
        changes = await ear.take(KEEPALIVE_SECONDS)
        if changes is None:
            return  # whoever comes back is told what waits then
        for change in changes:
            if is_over():
                return
            yield _asked(change.question) if isinstance(change, Asked) else _resolved(change.unique_id, change.outcome)
        if not changes:
            yield b": still here\n\n"


class _Over:
    """Whether the key of a stream has ended meanwhile."""

    def __init__(self, ear: Ear[Change]) -> None:
        self._ear = ear
        self._over = False

    def is_it(self) -> bool:
        return self._over

    def end(self) -> None:
        self._over = True
        self._ear.wake()


def _asked(question: Question) -> bytes:
    choices = question.choices
    return _event(
        ASKED,
        {
            "request_id": question.unique_id,
            "question": question.message,
            "kind": question.kind,
            "options": choices.options,
            "yes_label": choices.yes_label,
            "no_label": choices.no_label,
            "allow_feedback": question.allow_feedback,
            "context": question.context,
            "created_at": question.created_at,
            "expires_at": question.expires_at,
            "session_id": question.session_id,
        },
    )


def _resolved(unique_id: str, outcome: str) -> bytes:
    return _event(RESOLVED, {"request_id": unique_id, "outcome": outcome})


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()
