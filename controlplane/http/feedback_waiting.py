"""Calls that wait for a person's answer: in memory, without a database connection, and the question stands by them."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from litestar import Request

from controlplane.domain.errors import (
    DatabaseUnavailable,
    FieldFault,
    RequestCancelled,
    RequestNotFound,
    TooManyQuestions,
)
from controlplane.domain.events import Actor
from controlplane.domain.feedback import Asking
from controlplane.domain.ids import check_name
from controlplane.domain.sealing import Opener, Sealed
from controlplane.edge.deps import present, presented_of, principal_of, runtime_of, still_here, transaction
from controlplane.runtime import Wait
from controlplane.services import feedback as service
from controlplane.services.feedback import Standing

RETRY_SECONDS = 1.0
# Past its deadline a question is ended by whoever looks; a sleep that ends on the dot could look a moment too early.
AFTER_DEADLINE_SECONDS = 0.05

AnyRequest = Request[Any, Any, Any]


def path_id(unique_id: str) -> str:
    """The id in a path.

    Raises:
        RequestNotFound: no question can have it.
    """
    try:
        return check_name("unique_id", unique_id)
    except FieldFault:
        raise RequestNotFound from None


async def sealed_answer(request: AnyRequest, unique_id: str, seconds: float) -> Sealed | None:
    """The sealed answer of the caller's question as soon as it is there; None when the time has passed.

    Raises:
        RequestNotFound: this key has asked nothing under this id.
        RequestExpired, RequestCancelled: it ended without an answer.
        AnswerTaken: the answer was read and is gone.
    """
    runtime = runtime_of(request)
    until = _clock() + seconds
    wait = runtime.answers.enter([unique_id]) if seconds else None
    if wait is None:
        return (await _look(request, unique_id)).sealed
    with wait, runtime.keys.holding(presented_of(request), wait.wake):
        standing = await _look(request, unique_id)
        if standing.sealed is not None:
            return standing.sealed
        with runtime.askers.waiting(unique_id):
            async with present(request, wait):
                await wait.sleep(min(seconds, standing.seconds_left + AFTER_DEADLINE_SECONDS))
    if wait.settled or standing.seconds_left < seconds:
        return (await _look_until(request, unique_id, until)).sealed
    # What it is told now was so when it came; that its key has ended meanwhile it is told where that can be known.
    with suppress(DatabaseUnavailable):
        await still_here(request)
    return None


async def held_answer(
    request: AnyRequest, asking: Asking, opener: Opener, ask: Callable[[], Awaitable[object]], actor: Actor
) -> str:
    """Ask a question and hold the call to its end; the answer.

    A caller that goes, whose key ends or whose server stops takes the question along.

    Args:
        request: what is answered.
        asking: the question, under the opener's public key.
        opener: the keys of this one call, which are kept here alone.
        ask: asks it, in a transaction of its own.
        actor: who asks.

    Raises:
        TooManyQuestions: as many calls wait here as may.
        RequestExpired, RequestCancelled: it ended without an answer.
    """
    runtime = runtime_of(request)
    wait = runtime.answers.enter([asking.unique_id])
    if wait is None:
        raise TooManyQuestions("As many calls wait here as may; send it again after Retry-After.")
    seconds = asking.timeout_seconds + AFTER_DEADLINE_SECONDS
    with wait, runtime.keys.holding(presented_of(request), wait.wake):
        await ask()
        until = _clock() + seconds
        with runtime.askers.waiting(asking.unique_id):
            async with present(request, wait):
                await wait.sleep(seconds)
    sealed = await _end(request, asking.unique_id, wait, actor, over=_clock() >= until)
    return opener.open(sealed, asking.unique_id)


async def _end(request: AnyRequest, unique_id: str, wait: Wait, actor: Actor, *, over: bool) -> Sealed:
    """The answer of a question whose call has ended, or the refusal it ends with; either way it is let go of."""
    if wait.settled or over:
        sealed = (await _look_until(request, unique_id, _clock() + RETRY_SECONDS * 5)).sealed
    else:
        sealed = await _give_up(request, unique_id, actor)
        await still_here(request)
    if sealed is None:
        raise RequestCancelled
    with suppress(DatabaseUnavailable):  # it is gone 30 s after it was read in any case
        async with runtime_of(request).transaction() as conn:
            await service.withdraw(conn, unique_id, owner=principal_of(request).key_id, actor=actor)
    return sealed


async def _give_up(request: AnyRequest, unique_id: str, actor: Actor) -> Sealed | None:
    """Cancel a question that nobody waits for any more, whoever its key is by now; an answer that came first."""
    owner = principal_of(request).key_id
    async with runtime_of(request).transaction() as conn:
        standing = await service.answer(conn, unique_id, owner=owner)
        if standing.sealed is None:
            await service.withdraw(conn, unique_id, owner=owner, actor=actor)
    return standing.sealed


async def _look(request: AnyRequest, unique_id: str) -> Standing:
    async with transaction(request) as conn:
        return await service.answer(conn, unique_id, owner=principal_of(request).key_id)


async def _look_until(request: AnyRequest, unique_id: str, until: float) -> Standing:
    """As `_look`; a database that is away for a moment does not cost a call that waited its answer."""
    while True:
        try:
            return await _look(request, unique_id)
        except DatabaseUnavailable:
            if runtime_of(request).stopping or _clock() + RETRY_SECONDS > until:
                raise
        await asyncio.sleep(RETRY_SECONDS)


def _clock() -> float:
    return asyncio.get_running_loop().time()
