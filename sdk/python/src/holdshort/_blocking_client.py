"""Client: as AsyncClient, without await."""

import random
import time
from collections.abc import Iterator, Sequence
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
from holdshort._methods import Attempts, T, blocking, headers_for
from holdshort._origin import base_url, key_of, warn_if_readable
from holdshort._stream import Subscription
from holdshort._wire import Event, Execution

if TYPE_CHECKING:
    from holdshort._transport import Transport


class Client:
    """As AsyncClient, without await, for scripts and threads; use it in `with`, or call `close()`.

    Args:
        control_plane_url: HOLDSHORT_URL, or http://127.0.0.1:8080, when absent.
        api_key: HOLDSHORT_API_KEY when absent.
        patience: seconds to go on trying; None for as long as it takes.
        transport: something that sends instead of the network, see `holdshort.testing`.
    """

    def __init__(
        self,
        control_plane_url: str | None = None,
        api_key: str | None = None,
        *,
        patience: float | None = _core.PATIENCE_S,
        transport: "Transport | None" = None,
    ) -> None:
        self._url = base_url(control_plane_url)
        key = key_of(api_key)
        warn_if_readable(self._url, key)
        self._headers = headers_for(key)
        self._patience = patience
        self._transport = transport

    create_execution = blocking(_routes.create_execution)
    get_execution = blocking(_routes.get_execution)
    list_executions = blocking(_routes.list_executions)
    report_status = blocking(_routes.report_status)
    cancel_execution = blocking(_routes.cancel_execution)
    add_note = blocking(_routes.add_note)
    keep_step = blocking(_routes.keep_step)
    list_steps = blocking(_routes.list_steps)
    request_approval = blocking(_routes.request_approval)
    get_approval_status = blocking(_routes.get_approval_status)
    wait_for_approvals = blocking(_routes.wait_for_approvals)
    list_approvals = blocking(_routes.list_approvals)
    get_approval = blocking(_routes.get_approval)
    set_callback = blocking(_routes.set_callback)
    decide = blocking(_routes.decide)
    answer_execution = blocking(_routes.answer_execution)
    withdraw = blocking(_routes.withdraw)
    expire = blocking(_routes.expire)
    send_webhook = blocking(_routes.send_webhook)
    list_parked = blocking(_routes.list_parked)
    list_deliveries = blocking(_routes.list_deliveries)
    redrive = blocking(_routes.redrive)
    execute_async = blocking(_node_routes.execute_async)
    list_nodes = blocking(_node_routes.list_nodes)
    get_node = blocking(_node_routes.get_node)
    register_node = blocking(_node_routes.register_node)
    heartbeat = blocking(_node_routes.heartbeat)
    hand_back = blocking(_node_routes.hand_back)
    shutdown_node = blocking(_node_routes.shutdown_node)
    ask_feedback = blocking(_feedback_routes.ask_feedback)
    feedback_answer = blocking(_feedback_routes.feedback_answer)
    end_feedback = blocking(_feedback_routes.end_feedback)
    submit_feedback = blocking(_feedback_routes.submit_feedback)
    pending_feedback = blocking(_feedback_routes.pending_feedback)

    def send(self, call: Call[T], *, patience: float | EllipsisType | None = ...) -> T:
        """Send a call until it is answered.

        Args:
            call: from one of the route functions.
            patience: seconds for this call; None for any, the client's own when absent.

        Raises:
            HoldshortError: the control plane refused, or could not be reached in time.
        """
        attempts = Attempts(call, self._patience if isinstance(patience, EllipsisType) else patience)
        while True:
            verdict = attempts.judge(self._try(attempts.call()))
            if isinstance(verdict, Reply):
                return _core.read(call, verdict)
            time.sleep(verdict.delay)

    def execute(
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
            stands = self.send(call, patience=calling.patience(self._patience))
            time.sleep(calling.took(stands, time.monotonic()))
        return self.get_execution(calling.execution_id)

    def human_feedback(  # noqa: PLR0913  # the order is part of the published signature
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
        """Ask a person for what only they can give and wait for it: AsyncClient.human_feedback, without await."""
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
                said = self._heard(waiting, waiting.next(time.monotonic()))
                time.sleep(waiting.took(said, time.monotonic()))
            return answer
        finally:
            if (last := waiting.end()) is not None:
                with suppress(HoldshortError):
                    self.send(last, patience=END_S)

    def _heard(self, waiting: Waiting, call: Call[T]) -> T | None:
        try:
            return self.send(call, patience=waiting.patience(self._patience, time.monotonic()))
        except HoldshortError as error:
            waiting.refused(error)
            return None

    def _try(self, call: Call[Any]) -> Reply | Unreachable:
        try:
            return self._sender().exchange(call)
        except Unreachable as failure:
            return failure

    def _sender(self) -> "Transport":
        if self._transport is None:
            from holdshort._transport import HttpxTransport  # noqa: PLC0415  # importing holdshort stays cheap

            self._transport = HttpxTransport(self._url, self._headers)
        return self._transport

    def events(
        self,
        *,
        execution_id: str | None = None,
        types: Sequence[str] = (),
        after: str | None = None,
        from_now: bool = False,
    ) -> Iterator[Event]:
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

    def feedback_events(self) -> Iterator[Event]:
        """The short-lived questions that wait for a person, and then each as it is asked and as it ends.

        An event of type `blocking_human_feedback` is a question, and may come again after a break;
        `human_feedback_resolved` says that one ended. Never an answer.

        Raises:
            ConnectionFailed: the stream could not be had back for `patience` seconds.
        """
        subscription = Subscription(lambda _: _feedback_routes.feedback_stream(), patience=self._patience)
        return self._followed(subscription)

    def _followed(self, subscription: Subscription) -> Iterator[Event]:
        while True:
            try:
                yield from self._connection(subscription)
            except Unreachable as failure:
                time.sleep(subscription.lost(failure, time.monotonic(), random.random()))  # noqa: S311

    def _connection(self, subscription: Subscription) -> Iterator[Event]:
        with self._sender().stream(subscription.call()) as (reply, lines):
            subscription.opened(reply)
            for line in lines:
                if event := subscription.feed(line):
                    yield event
        raise Unreachable("the stream ended")

    def close(self) -> None:
        """Close the connections."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
