"""How a pause asks, waits and ends: registered first, then asked, and what the server says stands."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from types import EllipsisType
from typing import Protocol, TypeVar

from msgspec.structs import replace

from holdshort import _routes
from holdshort._core import Call
from holdshort._errors import (
    AmbiguousRequestId,
    Conflict,
    ExecutionCancelled,
    HandedBack,
    InvalidField,
    NotFound,
    StaleInstance,
    WaitTimeout,
)
from holdshort._pauses import Key, Pause
from holdshort._routes import ApprovalFilter, Question
from holdshort._session import Session
from holdshort._wire import Approval, ApprovalResult, ApprovalStatus, Asked, result_of

_LAST_WORD_S = 30.0
_NOT_CALLED = "callback_url_refused"
log = logging.getLogger("holdshort")
T = TypeVar("T")


class Asker(Protocol):
    """Who asks: the run itself, or an Outsider."""

    session: Session

    async def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call that is the run's own."""

    async def sure(self) -> None:
        """Return once an answer may wake the code that waits."""


class Outsider:
    """Asks and waits for a run whose code is elsewhere, and knows no fence of it.

    Args:
        session: of the running loop.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    async def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call; Conflict says that only the process that has the run may."""
        try:
            return await self.session.client.send(call, patience=patience)
        except StaleInstance as held:
            known = {"code": held.code, "status": held.status, "request_id": held.request_id, "details": held.details}
            raise Conflict(
                "only the process that was given this run may do that, from the run's own code", **known
            ) from held

    async def sure(self) -> None:
        """Nothing can have been taken over."""


async def pause(
    asker: Asker, key: Key, question: Question, *, callback_url: str | None, timeout: float | None
) -> ApprovalResult:
    """Ask one round of a question and wait for what becomes of it.

    Args:
        asker: whose question it is.
        key: names the round.
        question: without round and callback, which are added here.
        callback_url: where the decision is to be pushed; None for pull only.
        timeout: seconds after which the server is asked to expire it.
    """
    until = deadline(timeout)
    session = asker.session
    entry = session.registry.register(key)
    try:
        asked = await _ask(asker, partial(_call, key, question, entry), callback_url, timeout)
        if asked.final:
            result = result_of(asked, key.execution_id)
        else:
            entry.approval_id = asked.approval_id
            answer = await _answer(asker, entry, until)
            result = await _expired(asker, asked.approval_id) if answer is None else answer
        session.registry.resolve(result)
    finally:
        session.registry.release(key, entry)
    await stop_if_cancelled(session, result)
    return result


async def resume(
    asker: Asker, standing: ApprovalStatus, *, callback_url: str | None, until: float | None
) -> ApprovalResult:
    """Wait for an approval that was asked before, perhaps by a process that is gone.

    Args:
        asker: who waits.
        standing: how it stood when it was looked up.
        callback_url: where the decision is to be pushed; None for pull only.
        until: the loop's time to wait to, see `deadline`.

    Raises:
        WaitTimeout: it is still pending; nothing was changed.
    """
    if standing.final:
        return result_of(standing, standing.execution_id)
    key = Key(standing.execution_id, standing.approval_request_id, standing.round)
    registry = asker.session.registry
    entry = registry.register(key)
    entry.approval_id = standing.approval_id
    try:
        if callback_url:
            await _move(asker, entry, callback_url, until)
        result = await _answer(asker, entry, until)
    finally:
        registry.release(key, entry)
    if result is None:
        raise WaitTimeout(details={"approval_id": standing.approval_id})
    return result


async def find(
    session: Session, approval_request_id: str, *, node_id: str, execution_id: str | None, until: float | None
) -> ApprovalStatus:
    """The approval that is meant: the execution's newest under the id, else the node's.

    Raises:
        ConnectionFailed: the control plane was not reached until then.
        NotFound: nobody asked under this id.
        AmbiguousRequestId: several could be meant; `details["approvals"]` lists them.
    """
    if execution_id is not None:
        named = _routes.get_approval_status(execution_id, approval_request_id=approval_request_id)
        return await session.client.send(named, patience=_left(until))
    which = ApprovalFilter(node_id=node_id, approval_request_id=approval_request_id, limit=200)
    # An id may stand for a million runs that are over; those that wait are few.
    found = await _listed(session, replace(which, status="pending"), until) or await _listed(session, which, until)
    pending = [approval for approval in found if not approval.final]
    if len(pending) == 1:
        return pending[0]
    if not found:
        raise NotFound(f"no approval was asked under {approval_request_id!r} by {node_id}", code="no_approval_request")
    if not pending and len({approval.execution_id for approval in found}) == 1:
        return max(found, key=lambda approval: approval.round)
    listed = [
        {"approval_id": a.approval_id, "execution_id": a.execution_id, "round": a.round, "status": a.status}
        for a in found
    ]
    raise AmbiguousRequestId(details={"approvals": listed})


async def _listed(session: Session, which: ApprovalFilter, until: float | None) -> list[Approval]:
    """Those that match, page by page until it is clear whether one or several executions asked."""
    found: list[Approval] = []
    cursor: str | None = None
    while True:
        page = await session.client.send(_routes.list_approvals(which, cursor=cursor), patience=_left(until))
        found += page.approvals
        cursor = page.next_cursor
        if not cursor or len({approval.execution_id for approval in found}) > 1:
            return found


def _call(key: Key, question: Question, entry: Pause, callback_url: str | None) -> Call[Asked]:
    complete = replace(
        question,
        round=key.round,
        callback_url=callback_url,
        callback_secret=entry.secret if callback_url else None,
    )
    return _routes.request_approval(key.execution_id, complete)


async def _ask(
    asker: Asker, make: Callable[[str | None], Call[Asked]], callback_url: str | None, timeout: float | None
) -> Asked:
    """Ask; where this agent may not be called back, ask without an address and wait by the held call alone."""
    try:
        return await asker.send(make(callback_url), patience=timeout)
    except InvalidField as refused:
        if refused.code != _NOT_CALLED or not asker.session.pulls:
            raise
        log.warning("the answer is waited for without callbacks: %s", refused)
    return await asker.send(make(None), patience=timeout)


async def _move(asker: Asker, entry: Pause, callback_url: str, until: float | None) -> None:
    moved = _routes.set_callback(entry.approval_id or "", callback_url, callback_secret=entry.secret)
    try:
        # Whoever holds the run is told there; a bystander is not, and hears of it by asking.
        with suppress(Conflict) if isinstance(asker, Outsider) else nullcontext():
            await asker.send(moved, patience=_left(until))
    except InvalidField as refused:
        if refused.code != _NOT_CALLED or not asker.session.pulls:
            raise
        log.warning("the answer is waited for without callbacks: %s", refused)


async def _answer(asker: Asker, entry: Pause, until: float | None) -> ApprovalResult | None:
    """The answer, or None when the time is up first."""
    session = asker.session
    if session.registry.draining:
        raise HandedBack
    approval_id = entry.approval_id or ""
    session.waits.add(approval_id)
    try:
        await asyncio.wait((entry.future,), timeout=_left(until))
    finally:
        session.waits.remove(approval_id)
    if not entry.future.done():
        return None
    outcome = entry.future.result()
    if isinstance(outcome, HandedBack):
        raise outcome.again()
    await asker.sure()
    return outcome


async def _expired(asker: Asker, approval_id: str) -> ApprovalResult:
    """End the question's time on the server; what it says stands is the result, an answer at the last moment too."""
    stands = await asker.send(_routes.expire(approval_id), patience=_LAST_WORD_S)
    return result_of(stands, stands.execution_id)


async def stop_if_cancelled(session: Session, result: ApprovalResult) -> None:
    """A question is withdrawn with its run's cancellation; only an operator's ends the code too."""
    if not result.withdrawn:
        return
    execution = await session.client.get_execution(result.execution_id)
    if execution.status == "cancelled" and not execution.ended_by_approval:
        raise ExecutionCancelled(
            f"execution {execution.execution_id} was cancelled: {execution.status_reason}",
            details={"status_reason": execution.status_reason},
        )


def deadline(timeout: float | None) -> float | None:
    """So many seconds from now, by the running loop's clock; None for never."""
    return None if timeout is None else asyncio.get_running_loop().time() + timeout


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - asyncio.get_running_loop().time())
