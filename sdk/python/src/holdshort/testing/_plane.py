"""ControlPlane: the book behind both kinds of transport, and what a test does to it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from holdshort._agent import Agent
from holdshort._core import Call, Reply, Unreachable
from holdshort._errors import RunFailed
from holdshort._feedback_routes import FeedbackQuestion
from holdshort._wire import Approval, Event, Execution, Step
from holdshort.testing import _filled, _handlers, _questions, _views
from holdshort.testing._book import Book, Kept, Refusal
from holdshort.testing._doors import AsyncDoor, Door, waking
from holdshort.testing._visits import Hold

T = TypeVar("T")
_START = datetime(2030, 1, 1, tzinfo=UTC)


class ControlPlane:
    """A control plane in memory.

    Use `connect(agent)`, `call` a reasoner, wait until it has `asked`, then `decide` or `advance` the clock.

    Args:
        start: where its clock stands at first; it moves only by `advance`.
    """

    def __init__(self, start: datetime = _START) -> None:
        self._book = Book(start)
        self._lock = threading.RLock()
        self._listeners: set[Callable[[], None]] = set()
        self._away = False
        self.calls: list[str] = []
        self.transport = AsyncDoor(self)
        self.blocking_transport = Door(self)

    @property
    def now(self) -> datetime:
        """What its clock says."""
        return self._book.now

    def connect(self, agent: Agent) -> Agent:
        """Let this agent speak to it instead of the network; returns the agent."""
        agent.use_transport(self.transport)
        return agent

    async def call(self, agent: Agent, reasoner: str, execution_id: str | None = None, **arguments: Any) -> Any:
        """Call a reasoner as its HTTP route does, and return its result.

        Args:
            agent: connected to this control plane.
            reasoner: its name.
            execution_id: to continue a run; a new one when absent.
            arguments: JSON, checked against the annotations.

        Raises:
            RunFailed: it ended otherwise; `code` says how.
        """
        answered = await agent.asgi.call(reasoner, arguments, execution_id)
        if answered.status == 200:
            return answered.body["result"]
        raise RunFailed(answered.body["message"], code=answered.body["error"], details=answered.body)

    async def asked(self, approval_request_id: str | None = None, *, timeout: float = 5.0) -> Approval:
        """Wait until something is asked (under an id) and pending; the newest such approval.

        Args:
            approval_request_id: any when absent.
            timeout: seconds of real time.

        Raises:
            TimeoutError: nothing was asked.
        """
        named = approval_request_id
        return await self._awaited(self.pending, lambda asked: named in {None, asked.approval_request_id}, timeout)

    async def _awaited(self, look: Callable[[], list[T]], meant: Callable[[T], bool], timeout: float) -> T:
        with self.listening(waking(changed := asyncio.Event())):
            async with asyncio.timeout(timeout):
                while not (found := [each for each in look() if meant(each)]):
                    await changed.wait()
                    changed.clear()
        return found[-1]

    def pending(self) -> list[Approval]:
        """What waits for a decision, oldest first."""
        with self._lock:
            return [self._shown(a) for a in self._book.approvals.values() if not a.final]

    def approvals(self) -> list[Approval]:
        """Everything that was ever asked, oldest first."""
        with self._lock:
            return [self._shown(a) for a in self._book.approvals.values()]

    def execution(self, execution_id: str) -> Execution:
        """A run as it stands; KeyError when there is none."""
        with self._lock:
            run = self._book.executions[execution_id]
            return msgspec.convert(msgspec.to_builtins(_views.execution(self._book, run)), Execution)

    def notes(self, execution_id: str) -> list[str]:
        """The notes of a run."""
        with self._lock:
            return [note["message"] for note in self._book.executions[execution_id].notes.values()]

    def steps(self, execution_id: str) -> list[Step]:
        """The stored steps of a run, in the order they were stored."""
        with self._lock:
            return list(self._book.executions[execution_id].steps)

    def decide(
        self, approval: Approval | str, decision: str, feedback: str = "", data: Any = None, *, values: Any = None
    ) -> Approval:
        """Decide as a person.

        Args:
            approval: or its id, or the request id it was asked under.
            decision: approved, rejected or request_changes, or an alias.
            feedback: comment for the agent.
            data: any JSON, handed to the agent.
            values: what is filled in, where it is approved and was asked with a form.

        Raises:
            LookupError: nothing pending is meant, or more than one.
            ValueError: the values do not fit the form; nothing was decided.
        """
        with self._changing():
            kept = self._meant(approval)
            filled = partial(_filled.response_to, kept.ask, values, data)
            with _said_as_value_error():
                self._book.decide(kept, decision, feedback, filled)
            return self._shown(kept)

    async def asked_feedback(self, unique_id: str | None = None, *, timeout: float = 5.0) -> FeedbackQuestion:
        """Wait until a short-lived question is asked (under an id) and pending; the newest such one.

        Args:
            unique_id: any when absent.
            timeout: seconds of real time.

        Raises:
            TimeoutError: nothing was asked.
        """
        return await self._awaited(self.pending_feedback, lambda asked: unique_id in {None, asked.unique_id}, timeout)

    def pending_feedback(self) -> list[FeedbackQuestion]:
        """The short-lived questions that wait for a person, oldest first; `advance` lets their time pass."""
        with self._lock:
            shown = [_questions.shown(asked) for asked in _questions.pending(self._book)]
        return msgspec.convert(msgspec.to_builtins(shown), list[FeedbackQuestion])

    def answer_feedback(self, question: FeedbackQuestion | str, response: str) -> None:
        """Answer a short-lived question as a person; it is sealed to its asker's key, as the real one does.

        Args:
            question: or its unique_id.
            response: text, one of the options, or a yes or a no.

        Raises:
            LookupError: no question under this id is pending.
            ValueError: it is no answer to this question, which stays open.
        """
        named = question if isinstance(question, str) else question.unique_id
        with self._changing():
            if named not in {asked.unique_id for asked in self.pending_feedback()}:
                raise LookupError(f"no question under {named!r} is pending")
            with _said_as_value_error():
                _questions.submit(self._book, named, response)

    def withdraw(self, approval: Approval | str) -> Approval:
        """Take a question back; named as in `decide`."""
        with self._changing():
            kept = self._meant(approval)
            self._book.settle(kept, "withdrawn")
            return self._shown(kept)

    def cancel(self, execution_id: str, reason: str = "cancelled_by_operator") -> None:
        """Cancel a run as an operator."""
        with self._changing():
            self._book.cancel(self._book.execution(execution_id), reason)

    def advance(self, *, hours: float = 0, seconds: float = 0) -> None:
        """Move its clock; what is due on the way expires, in order."""
        with self._changing():
            self._book.advance(timedelta(hours=hours, seconds=seconds))
            _questions.expire(self._book)

    @contextmanager
    def away(self) -> Iterator[None]:
        """While in here it cannot be reached, and calls that it holds break."""
        with self._changing():
            self._away = True
        try:
            yield
        finally:
            self._away = False

    def take(self, call: Call[Any]) -> Reply | Hold:
        """Answer a call at once, or say what it waits for; raises Unreachable while away."""
        with self._lock:
            self._check_reachable()
            self.calls.append(f"{call.method} {call.path}")
            answered = _handlers.answer(self._book, call)
        if call.method != "GET":
            self._tell()
        return answered

    def done(self, hold: Hold) -> Reply | None:
        """The answer of a held call as soon as there is one; raises Unreachable while away."""
        with self._lock:
            self._check_reachable()
            if hold.over():
                return _handlers.held(hold)
            return None

    def events_after(self, last_id: str | None) -> list[Event]:
        """The history rows after one."""
        with self._lock:
            self._check_reachable()
            known = int(last_id.removeprefix("e")) if last_id else 0
            return [Event(**each) for each in self._book.events[known:]]

    def feedback_events_after(self, place: int | None) -> tuple[list[Event], int]:
        """What was told of short-lived questions after a place, and the next one; at first, those that wait."""
        with self._lock:
            self._check_reachable()
            told = self._book.question_events[place:]
            if place is None:
                waiting = _questions.pending(self._book)
                told = [{"id": "", "type": _questions.ASKED, "data": _questions.as_event(asked)} for asked in waiting]
            return [Event(**each) for each in told], len(self._book.question_events)

    @contextmanager
    def listening(self, wake: Callable[[], None]) -> Iterator[None]:
        """Call `wake` at each change."""
        with self._lock:
            self._listeners.add(wake)
        try:
            yield
        finally:
            with self._lock:
                self._listeners.discard(wake)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._lock:
            yield
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            listeners = list(self._listeners)
        for wake in listeners:
            wake()

    def _check_reachable(self) -> None:
        if self._away:
            raise Unreachable("the testing control plane is away")

    def _shown(self, kept: Kept) -> Approval:
        return msgspec.convert(msgspec.to_builtins(_views.approval(self._book, kept)), Approval)

    def _meant(self, approval: Approval | str) -> Kept:
        named = approval if isinstance(approval, str) else approval.approval_id
        if named in self._book.approvals:
            return self._book.approvals[named]
        found = [a for a in self._book.approvals.values() if a.ask.approval_request_id == named and not a.final]
        if len(found) != 1:
            raise LookupError(f"{len(found)} approvals under {named!r} are pending")
        return found[0]


@contextmanager
def _said_as_value_error() -> Iterator[None]:
    """A test's own answer that does not fit is the test's mistake."""
    try:
        yield
    except Refusal as refusal:
        if refusal.code != "invalid_answer":
            raise
        raise ValueError(str(refusal)) from refusal
