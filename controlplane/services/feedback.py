"""Short-lived questions: asked, answered by a person, read by whoever asked; each is the inside of one transaction."""

from typing import Any

from msgspec import Struct

from controlplane.domain import feedback as rules
from controlplane.domain.answers import answer_to
from controlplane.domain.errors import DuplicateRequest, RequestIdUsed, RequestNotFound, TooManyQuestions
from controlplane.domain.events import SWEEPER, Actor, Fact, FactType
from controlplane.domain.feedback import Asking, FeedbackStatus, Kept, Question
from controlplane.domain.sealing import Sealed, seal
from controlplane.services import work_clock
from controlplane.storage import feedback, history
from controlplane.storage.engine import Connection

_FACTS = {
    FeedbackStatus.ANSWERED: FactType.FEEDBACK_ANSWERED,
    FeedbackStatus.EXPIRED: FactType.FEEDBACK_EXPIRED,
    FeedbackStatus.CANCELLED: FactType.FEEDBACK_CANCELLED,
}
# A tombstone may be buried between finding an id taken and looking at who has it.
_TRIES = 3


class Standing(Struct, frozen=True):
    """Where a question stands for whoever asked: the sealed answer, or the seconds until its deadline."""

    sealed: Sealed | None
    seconds_left: float


async def ask(conn: Connection, asking: Asking, *, owner: str | None, actor: Actor) -> Question:
    """Ask a question, or join the wait for the same one.

    Args:
        conn: the open transaction.
        asking: what is asked.
        owner: the id of the key that asks; None in open mode.
        actor: who asks.

    Raises:
        FieldFault: as `domain.feedback.check`.
        TooManyQuestions: as many questions of this key are pending as may be.
        DuplicateRequest: something else is pending under this id.
        RequestIdUsed: something ended under this id within the last hour.
    """
    rules.check(asking)
    await feedback.lock_owner(conn, owner)
    for _ in range(_TRIES):
        standing = await feedback.lock(conn, asking.unique_id)
        if standing is not None and await _alive(conn, standing) is FeedbackStatus.PENDING:
            return await _join(conn, standing, asking, owner)
        if await feedback.count_pending(conn, owner) >= rules.MOST_PENDING:
            raise TooManyQuestions
        question = await feedback.add(conn, asking, owner)
        if question is not None:
            await history.record(conn, _fact(FactType.FEEDBACK_ASKED, asking.unique_id, actor, kind=question.kind))
            await work_clock.stop(conn, question)
            return question
        if standing is not None:
            raise RequestIdUsed
    raise DuplicateRequest


async def pending(conn: Connection) -> list[Question]:
    """The questions that wait for a person, oldest first."""
    return await feedback.pending(conn)


async def submit(
    conn: Connection, unique_id: str, response: str, *, submission_id: str | None = None, actor: Actor
) -> None:
    """Answer a question: what was said is sealed for whoever asked, and nothing else of it is kept.

    Args:
        conn: the open transaction.
        unique_id: the question.
        response: what the person typed or chose.
        submission_id: the person's own name for this answer; the same again is a success that changes nothing.
        actor: who answers.

    Raises:
        RequestNotFound: nothing is known under this id.
        AlreadyAnswered, RequestExpired, RequestCancelled: it has ended.
        InvalidAnswer: this is no answer to it; it stays open.
    """
    kept = await feedback.lock(conn, unique_id)
    if kept is None:
        raise RequestNotFound
    if kept.status is FeedbackStatus.ANSWERED and submission_id is not None and kept.submission_id == submission_id:
        return
    rules.check_open(await _alive(conn, kept))
    if kept.question is None or kept.public_key is None:
        raise RuntimeError("a pending question has no words or no key")
    sealed = seal(answer_to(kept.question.choices, response), kept.public_key, unique_id)
    await feedback.end(conn, kept, FeedbackStatus.ANSWERED, sealed=sealed, submission_id=submission_id)
    await work_clock.go_on(conn, _clocks(kept))
    await history.record(conn, _fact(FactType.FEEDBACK_ANSWERED, unique_id, actor))


async def answer(conn: Connection, unique_id: str, *, owner: str | None) -> Standing:
    """What whoever asked is told: the sealed answer, or that it is pending, which says that somebody waits.

    Raises:
        RequestNotFound: this key has asked nothing under this id.
        RequestExpired, RequestCancelled: it ended without an answer.
        AnswerTaken: the answer was read and is gone.
    """
    kept = await _own(conn, unique_id, owner)
    status = await _alive(conn, kept)
    rules.check_alive(status)
    if status is FeedbackStatus.PENDING:
        await feedback.renew(conn, [unique_id])
        return Standing(None, (kept.expires_at - kept.now).total_seconds())
    sealed = rules.taken(kept)
    await feedback.note_read(conn, unique_id)
    return Standing(sealed, 0.0)


async def withdraw(conn: Connection, unique_id: str, *, owner: str | None, actor: Actor) -> FeedbackStatus:
    """Let go of a question: a pending one is cancelled, the answer of one that has it is taken; how it ended.

    Raises:
        RequestNotFound: this key has asked nothing under this id.
    """
    kept = await _own(conn, unique_id, owner)
    status = await _alive(conn, kept)
    if status is FeedbackStatus.PENDING:
        await feedback.end(conn, kept, FeedbackStatus.CANCELLED)
        await work_clock.go_on(conn, _clocks(kept))
        await history.record(conn, _fact(FactType.FEEDBACK_CANCELLED, unique_id, actor))
        return FeedbackStatus.CANCELLED
    if kept.sealed is not None:
        await feedback.drop_sealed(conn, unique_id)
    return status


async def sweep(conn: Connection, *, limit: int) -> int:
    """End what is past its deadline or waited for by nobody, let go of what was kept long enough; how many rows.

    What others hold locked is left: whoever holds one ends it first where it is due.
    """
    ended = await feedback.end_due(conn, limit)
    await work_clock.go_on(conn, [one.clock_of for one in ended if one.clock_of is not None])
    await history.record(conn, *(_fact(_FACTS[one.status], one.unique_id, SWEEPER) for one in ended))
    return len(ended) + await feedback.tidy(conn, limit)


async def _join(conn: Connection, standing: Kept, asking: Asking, owner: str | None) -> Question:
    if standing.question is None or not rules.joins(standing, asking, owner):
        raise DuplicateRequest
    await feedback.renew(conn, [asking.unique_id])
    return standing.question


async def _own(conn: Connection, unique_id: str, owner: str | None) -> Kept:
    kept = await feedback.lock(conn, unique_id)
    if kept is None or kept.owner != owner:
        raise RequestNotFound
    return kept


async def _alive(conn: Connection, kept: Kept) -> FeedbackStatus:
    """The state of a question that is locked; what is due ends first, and that stands whatever is refused then."""
    status = rules.due(kept)
    if status is None:
        return kept.status
    await feedback.end(conn, kept, status)
    await work_clock.go_on(conn, _clocks(kept))
    await history.record(conn, _fact(_FACTS[status], kept.unique_id, SWEEPER))
    conn.keep()
    return status


def _clocks(kept: Kept) -> list[str]:
    """The run whose clock a pending question stopped."""
    question = kept.question if kept.stops_clock else None
    return [question.execution_id] if question is not None and question.execution_id is not None else []


def _fact(type_: FactType, unique_id: str, actor: Actor, **more: Any) -> Fact:
    return Fact(type=type_, actor=actor, data={"unique_id": unique_id, **more})
