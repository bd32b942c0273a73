"""AsyncClient: one method per route, made from the same functions as Client's; the shells only send."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import partial
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Self

from holdshort import _core, _feedback_routes, _node_routes, _routes
from holdshort._calling import Calling
from holdshort._choices import FeedbackKind, checked_choices
from holdshort._core import Call, Reply, Unreachable
from holdshort._errors import HoldshortError
from holdshort._feedback import END_S, Asked, Waiting
from holdshort._methods import Attempts, T, awaited, headers_for
from holdshort._origin import base_url, key_of, warn_if_readable
from holdshort._stream import Subscription
from holdshort._wire import Event, Execution

if TYPE_CHECKING:
    from holdshort._transport import AsyncTransport


class AsyncClient:
    """The control plane's routes for programs that are no agent, awaited.

    Every call is repeated through connection failures, 429, 502, 503 and 504 for `patience` seconds. Use it as an
    async context manager, or call `aclose()`.

    Args:
        control_plane_url: HOLDSHORT_URL, or http://127.0.0.1:8080, when absent.
        api_key: HOLDSHORT_API_KEY when absent.
        patience: seconds to go on trying; None for as long as the caller waits.
        transport: something that sends instead of the network, see `holdshort.testing`.
    """

    def __init__(
        self,
        control_plane_url: str | None = None,
        api_key: str | None = None,
        *,
        patience: float | None = _core.PATIENCE_S,
        transport: "AsyncTransport | None" = None,
    ) -> None:
        self._url = base_url(control_plane_url)
        key = key_of(api_key)
        warn_if_readable(self._url, key)
        self._headers = headers_for(key)
        self._patience = patience
        self._transport = transport

    create_execution = awaited(_routes.create_execution)
    get_execution = awaited(_routes.get_execution)
    list_executions = awaited(_routes.list_executions)
    report_status = awaited(_routes.report_status)
    cancel_execution = awaited(_routes.cancel_execution)
    add_note = awaited(_routes.add_note)
    keep_step = awaited(_routes.keep_step)
    list_steps = awaited(_routes.list_steps)
    request_approval = awaited(_routes.request_approval)
    get_approval_status = awaited(_routes.get_approval_status)
    wait_for_approvals = awaited(_routes.wait_for_approvals)
    list_approvals = awaited(_routes.list_approvals)
    get_approval = awaited(_routes.get_approval)
    set_callback = awaited(_routes.set_callback)
    decide = awaited(_routes.decide)
    answer_execution = awaited(_routes.answer_execution)
    withdraw = awaited(_routes.withdraw)
    expire = awaited(_routes.expire)
    send_webhook = awaited(_routes.send_webhook)
    list_parked = awaited(_routes.list_parked)
    list_deliveries = awaited(_routes.list_deliveries)
    redrive = awaited(_routes.redrive)
    execute_async = awaited(_node_routes.execute_async)
    list_nodes = awaited(_node_routes.list_nodes)
    get_node = awaited(_node_routes.get_node)
    register_node = awaited(_node_routes.register_node)
    heartbeat = awaited(_node_routes.heartbeat)
    hand_back = awaited(_node_routes.hand_back)
    shutdown_node = awaited(_node_routes.shutdown_node)
    ask_feedback = awaited(_feedback_routes.ask_feedback)
    feedback_answer = awaited(_feedback_routes.feedback_answer)
    end_feedback = awaited(_feedback_routes.end_feedback)
    submit_feedback = awaited(_feedback_routes.submit_feedback)
    pending_feedback = awaited(_feedback_routes.pending_feedback)

    async def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call until it is answered.

        Args:
            call: from one of the route functions.
            patience: seconds for this call; None for any, the client's own when absent.

        Raises:
            HoldshortError: the control plane refused, or could not be reached in time.
        """
        attempts = Attempts(call, self._patience if isinstance(patience, EllipsisType) else patience)
        while True:
            verdict = attempts.judge(await self._try(attempts.call()))
            if isinstance(verdict, Reply):
                return _core.read(call, verdict)
            await asyncio.sleep(verdict.delay)

    async def execute(
        self,
        node_id: str,
        reasoner: str,
        input: Any = None,  # noqa: A002  # the wire's own word
        *,
        wait: float | None = 60,
        idempotency_key: str | None = None,
    ) -> Execution:
        """Let a node run a reasoner and wait for its end, through restarts of the control plane and of the agent.

        Args:
            node_id: the agent.
            reasoner: its function's name.
            input: JSON, an object with the function's arguments.
            wait: seconds to wait for the end; None for as long as it takes.
            idempotency_key: the same again joins the run that it started before. Retries of one call always do.

        Returns:
            The run, over (`final`) or as it stands when the time is up; it goes on then, and can be waited for again
            under the same key.

        Raises:
            NotFound: no such node registered, or it has no such reasoner; `details["registered"]` lists what there is.
            IdempotencyConflict: the key stands for another call.
            Unavailable: too many runs wait for this node already.
        """
        calling = Calling(node_id, reasoner, input, wait=wait, key=idempotency_key)
        while (call := calling.next(time.monotonic())) is not None:
            stands = await self.send(call, patience=calling.patience(self._patience))
            await asyncio.sleep(calling.took(stands, time.monotonic()))
        return await self.get_execution(calling.execution_id)

    async def human_feedback(  # noqa: PLR0913  # the order is part of the published signature
        self,
        message_for_user: str,
        unique_id: str,
        timeout_seconds: float = 300,
        options: Sequence[str] | None = None,
        kind: FeedbackKind | None = None,
        *,
        yes_label: str | None = None,
        no_label: str | None = None,
        execution_id: str | None = None,
    ) -> str:
        """Ask a person for what only they can give, a one-time code or a yes, and wait: seconds to half an hour.

        The key that opens the answer is made here for this one question, so the answer is nowhere but in what this
        returns: keep it out of logs, results and steps. Restarts of the control plane are not noticed. A caller that
        is cancelled, interrupted or gone withdraws the question.

        Args:
            message_for_user: the question, 1-4,000 characters.
            unique_id: 1-128 of `A-Z a-z 0-9 . _ ~ : -`, new for each question; `holdshort.unique_id("otp")` makes one.
            timeout_seconds: 5-1800; nobody's answer is waited for longer.
            options: of multiple_choice, 1-20 distinct texts of 1-200 characters.
            kind: text, yes_no, multiple_choice or secret (masked while it is typed); multiple_choice where options
                are given, else text.
            yes_label: what the yes of yes_no is called.
            no_label: what its no is called.
            execution_id: the run that asks, shown with the question.

        Returns:
            The text; for yes_no `yes` or `no`, for multiple_choice the option.

        Raises:
            InvalidField: a field breaks its rule; nothing was asked.
            FeedbackExpired: nobody answered in time. That is never an approval.
            FeedbackCancelled: the question was withdrawn.
            DuplicateRequest: another call asks under this id.
            RequestIdUsed: a question under this id ended within the last hour.
            ConnectionFailed: the control plane was not reached; nothing was answered.
        """
        choices = checked_choices(kind, options, yes_label, no_label)
        asked = Asked(
            unique_id=unique_id,
            message_for_user=message_for_user,
            timeout_seconds=timeout_seconds,
            choices=choices,
            execution_id=execution_id,
        )
        waiting = Waiting(asked)
        try:
            while (answer := waiting.answer) is None:
                said = await self._heard(waiting, waiting.next(time.monotonic()))
                await asyncio.sleep(waiting.took(said, time.monotonic()))
            return answer
        finally:
            await self._told_last(waiting.end())

    async def _told_last(self, last: Call[Any] | None) -> None:
        if last is None:
            return
        with suppress(HoldshortError, TimeoutError):
            async with asyncio.timeout(END_S):
                await self.send(last, patience=END_S)

    async def _heard(self, waiting: Waiting, call: Call[T]) -> T | None:
        try:
            return await self.send(call, patience=waiting.patience(self._patience, time.monotonic()))
        except HoldshortError as error:
            waiting.refused(error)
            return None

    async def _try(self, call: Call[Any]) -> Reply | Unreachable:
        try:
            return await self._sender().exchange(call)
        except Unreachable as failure:
            return failure

    def _sender(self) -> "AsyncTransport":
        if self._transport is None:
            from holdshort._transport import HttpxAsyncTransport  # noqa: PLC0415  # importing holdshort stays cheap

            self._transport = HttpxAsyncTransport(self._url, self._headers)
        return self._transport

    def events(
        self,
        *,
        execution_id: str | None = None,
        types: Sequence[str] = (),
        after: str | None = None,
        from_now: bool = False,
    ) -> AsyncIterator[Event]:
        """History rows as they happen; a broken stream is resumed after the last one seen.

        Args:
            execution_id: only this execution's rows.
            types: only these types of rows.
            after: the id of the last event that was seen; from the beginning of what is kept when absent.
            from_now: only what happens from now on.

        Raises:
            ConnectionFailed: the stream could not be had back for `patience` seconds.
        """
        make = partial(_routes.event_stream, execution_id=execution_id, types=types, from_now=from_now)
        subscription = Subscription(lambda seen: make(after=seen), after=after, patience=self._patience)
        return self._followed(subscription)

    def feedback_events(self) -> AsyncIterator[Event]:
        """The short-lived questions that wait for a person, and then each as it is asked and as it ends.

        An event of type `blocking_human_feedback` is a question, and may come again after a break;
        `human_feedback_resolved` says that one ended. Never an answer.

        Raises:
            ConnectionFailed: the stream could not be had back for `patience` seconds.
        """
        subscription = Subscription(lambda _: _feedback_routes.feedback_stream(), patience=self._patience)
        return self._followed(subscription)

    async def _followed(self, subscription: Subscription) -> AsyncIterator[Event]:
        while True:
            try:
                async for event in self._connection(subscription):
                    yield event
            except Unreachable as failure:
                await asyncio.sleep(subscription.lost(failure, time.monotonic(), random.random()))  # noqa: S311

    async def _connection(self, subscription: Subscription) -> AsyncIterator[Event]:
        async with self._sender().stream(subscription.call()) as (reply, lines):
            subscription.opened(reply)
            async for line in lines:
                if event := subscription.feed(line):
                    yield event
        raise Unreachable("the stream ended")

    async def aclose(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()
