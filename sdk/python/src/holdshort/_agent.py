"""Agent: what a user's program holds. It pauses, waits, notes, and serves its reasoners."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdshort import _asking, _errors, _routes
from holdshort._forms import Sought, of_payload
from holdshort._pauses import Key
from holdshort._people import People
from holdshort._reasoners import Reasoner, Resume
from holdshort._rounds import Rounds
from holdshort._runner import Callback, Runner
from holdshort._runs import Run, log
from holdshort._wire import ApprovalResult, Form, OnExpiry
from holdshort._work import Work

if TYPE_CHECKING:
    from holdshort._asgi import AgentApp

F = TypeVar("F", bound=Callable[..., Any])


class Agent(Runner, Work, People):
    """An agent program and its connection to the control plane.

    Args:
        node_id: the agent's name, 1-128 of `A-Z a-z 0-9 . _ ~ : -`; its runs belong to it.
        version: of the agent.
        control_plane_url: HOLDSHORT_URL, or http://127.0.0.1:8080, when absent.
        api_key: HOLDSHORT_API_KEY when absent.
        callback_url: base URL where the control plane reaches this agent; HOLDSHORT_CALLBACK_URL when absent, or
            the loopback address that `run` serves on, if the control plane is on this machine.
        callback: "push" is told by callback, "pull" by one held call, "auto" by whichever is first. Without an
            address "auto" only pulls.
        max_concurrent: how many runs the control plane gives to the node at a time; its own limit when None.
    """

    def __init__(  # noqa: PLR0913  # what is set of an agent, each by its name
        self,
        node_id: str,
        version: str,
        control_plane_url: str | None = None,
        api_key: str | None = None,
        callback_url: str | None = None,
        callback: Callback = "auto",
        *,
        max_concurrent: int | None = None,
    ) -> None:
        super().__init__(node_id, (control_plane_url, api_key), callback_url, callback)
        self.version = version
        self.max_concurrent = max_concurrent
        self.reasoners: dict[str, Reasoner] = {}
        self._app: AgentApp | None = None

    def reasoner(
        self,
        name: str | None = None,
        timeout_seconds: float | None = None,
        resume: Resume = "when_decided",
    ) -> Callable[[F], F]:
        """Register a function that can be called by its name; its annotations convert and check the input.

        Async functions share one event loop: what blocks it for longer than the lease of 15 s makes the process count
        as gone. Plain functions run in a thread and use `pause_sync`. A thread cannot be stopped: when its time limit
        passes the run is reported as timeout, and the thread's outcome is dropped.

        Args:
            name: the function's own when absent.
            timeout_seconds: of work; waiting for people does not count.
            resume: "when_decided" waits without a process after a crash, "at_start" starts again at once.

        Raises:
            TypeError: the function has parameters that cannot be given by name.
            ValueError: the name is taken.
        """
        if callable(name):
            raise TypeError("write @app.reasoner(), with parentheses")

        def register(function: F) -> F:
            known = name or function.__name__
            if known in self.reasoners:
                raise ValueError(f"there is a reasoner {known!r} already")
            self.reasoners[known] = Reasoner(function, known, timeout_seconds=timeout_seconds, resume=resume)
            if self._app is not None:
                self._app.lifetime.changed()
            return function

        return register

    def pause(  # noqa: PLR0913, PLR0917  # the order is part of the published signature
        self,
        approval_request_id: str | None = None,
        approval_request_url: str = "",
        expires_in_hours: float | None = 72,
        timeout: float | None = None,
        execution_id: str | None = None,
        title: str | None = None,
        description: str | None = None,
        payload: Any = None,
        on_expiry: OnExpiry = "cancel",
        *,
        editable: bool = False,
        schema: Any = None,
        form: Form | None = None,
    ) -> Coroutine[Any, Any, ApprovalResult]:
        """Ask a person and wait, for days if need be; await the result.

        A run that is started again under its execution id finds its question, and its answer, again. The n-th pause
        under an id asks its n-th round; one that raised, or that the caller gave up, does not count, so that trying
        again finds the same question. Restarts of the control plane are not noticed.

        Args:
            approval_request_id: 1-256 characters, unique in this execution. When absent it is made from the calling
                function's qualified name and a counter in start order; give one when pauses start in an order that
                may change.
            approval_request_url: page where the person decides; the control plane's own when empty.
            expires_in_hours: 1 s to 8760 h, fractions allowed; the control plane's default when None.
            timeout: seconds after which the server is asked to expire the question; the result is what the server
                says stands. With on_expiry="cancel" the run is cancelled then; to go on asking use "resume".
            execution_id: the run that asks; the current one when absent.
            title: for the reviewer, at most 200 characters.
            description: for the reviewer, at most 20,000 characters.
            payload: the exact action, any JSON up to 256 KiB.
            on_expiry: "cancel" ends the run at the deadline (the code still sees the result and may clean up),
                "resume" lets it go on.
            editable: the reviewer may approve the payload with changes that fit `schema`; `result.values` is what was
                approved, `result.original` the payload as it was. Do what `values` says.
            schema: of what is filled in, as in `ask`; with `editable` of what the payload may become.
            form: what is filled in, in full, instead of these two.

        Returns:
            What was decided. A rejection is returned too: the code goes on, but can ask nothing new.

        Raises:
            NoExecution: outside a run, without execution_id.
            ExecutionFinished: the run is over, so nothing new can be asked.
            RequestConflict: the id stands for another payload, form or on_expiry.
            ValuesInvalid: it is approved with values that do not fit the schema; they are not handed over.
            MissingExtra: a JSON Schema needs the extra `forms`; a type does not.
            ConnectionFailed: `timeout` passed without the control plane; nothing was decided.
            ExecutionCancelled: an operator cancelled the run.
            HandedBack: this process stops.
        """
        sought = of_payload(form, schema, payload, editable=editable)
        rounds, _ = self._asker(self._run(), execution_id)
        return self._seek(
            sought,
            approval_request_id or rounds.made_id(sys._getframe(1).f_code.co_qualname),  # noqa: SLF001
            approval_request_url=approval_request_url or None,
            expires_in_hours=expires_in_hours,
            title=title,
            description=description,
            payload=payload,
            on_expiry=on_expiry,
            timeout=timeout,
            execution_id=execution_id,
        )

    def _seek(
        self,
        sought: Sought | None,
        approval_request_id: str,
        *,
        timeout: float | None,
        execution_id: str | None,
        **asked: Any,
    ) -> Coroutine[Any, Any, ApprovalResult]:
        run = self._run()
        # Id and round are taken when the pause is started, not when its coroutine first runs: start order counts.
        rounds, execution = self._asker(run, execution_id)
        if run is not None:
            run.steps.pausing(approval_request_id)
        form = None if sought is None else sought.form
        question = _routes.Question(approval_request_id=approval_request_id, form=form, **asked)
        key = rounds.next(execution, approval_request_id)
        asking = partial(self._pause, run, key=key, question=question, timeout=timeout)
        return self._fitting(rounds, key, sought, asking)

    @staticmethod
    async def _fitting(
        rounds: Rounds, key: Key, sought: Sought | None, asked: Callable[[], Awaitable[ApprovalResult]]
    ) -> ApprovalResult:
        with rounds.answered(key):
            if sought is None:
                return await asked()
            await sought.ready()
            return sought.fitting(await asked())

    async def _pause(
        self, run: Run | None, *, key: Key, question: _routes.Question, timeout: float | None
    ) -> ApprovalResult:
        url = self._callback_target()
        if run is not None and run.execution_id == key.execution_id:
            with run.waiting():
                return await _asking.pause(run, key, question, callback_url=url, timeout=timeout)
        async with self.sessions.use() as session:
            return await _asking.pause(_asking.Outsider(session), key, question, callback_url=url, timeout=timeout)

    def pause_sync(self, approval_request_id: str | None = None, **question: Any) -> ApprovalResult:
        """As `pause`, for plain functions: the same arguments, by name; blocks the function's own thread.

        Raises:
            NoExecution: not called from the thread of a reasoner.
        """
        run = self._run()
        if run is None:
            raise _errors.NoExecution("pause_sync works in a plain reasoner's thread; elsewhere await pause()")
        made = approval_request_id or run.rounds.made_id(sys._getframe(1).f_code.co_qualname)  # noqa: SLF001
        run.steps.pausing(made)
        return run.blocking(lambda: self.pause(made, **question))

    async def wait_for_resume(
        self,
        approval_request_id: str,
        execution_id: str | None = None,
        timeout: float | None = None,
        *,
        schema: Any = None,
    ) -> ApprovalResult:
        """Wait for a question asked before, perhaps by a process that is gone; a decision made meanwhile is returned.

        Without an execution (here or by name) the node's approvals under the id are looked up: the one that is
        pending, else the newest when one execution asked.

        Args:
            approval_request_id: under which it was asked.
            execution_id: that asked; the current run's when absent.
            timeout: seconds to wait.
            schema: that it was asked with; the values are held against it as in `ask`, and become its type.

        Raises:
            NotFound: nobody asked under this id.
            AmbiguousRequestId: several could be meant; the error lists them.
            WaitTimeout: still pending, and can be waited for again.
            ConnectionFailed: `timeout` passed before the control plane could say how it stands.
            ValuesInvalid: it is approved with values that do not fit the schema.
        """
        sought = of_payload(None, schema, None, editable=False)
        if sought is not None:
            await sought.ready()
        result = await self._resumed(approval_request_id, execution_id, timeout)
        return result if sought is None else sought.fitting(result)

    async def _resumed(
        self, approval_request_id: str, execution_id: str | None, timeout: float | None
    ) -> ApprovalResult:
        run = self._run()
        named = execution_id or (run.execution_id if run else None)
        async with self.sessions.use() as session:
            until = _asking.deadline(timeout)
            standing = await _asking.find(
                session, approval_request_id, node_id=self.node_id, execution_id=named, until=until
            )
            url = self._callback_target()
            if run is None or run.execution_id != standing.execution_id:
                return await _asking.resume(_asking.Outsider(session), standing, callback_url=url, until=until)
            with run.waiting():
                result = await _asking.resume(run, standing, callback_url=url, until=until)
            await _asking.stop_if_cancelled(session, result)
            return result

    def note(self, message: str, tags: Sequence[str] = ()) -> None:
        """Keep a note with the current execution, in the background. It never raises into the run.

        Args:
            message: for whoever reads the run.
            tags: words to find it by.
        """
        run = self._run()
        if run is None:
            log.warning("a note outside a run was dropped")
            return
        try:
            run.note(message, tags)
        except Exception as error:  # the run matters more than what is noted of it
            log.warning("a note of %s was dropped: %s", run.execution_id, error)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncIterator[None]:
        """While in here the agent is registered and given runs; at the end it is drained, as by SIGTERM.

        For frameworks that do not tell a mounted application when they start and stop, which are most: pass it as
        `FastAPI(lifespan=agent.lifespan)` or `Litestar(lifespan=[agent.lifespan])`. The agent needs a callback_url.

        Args:
            app: given by the framework, and not used.
        """
        served = self.asgi
        served.begin()
        try:
            yield
        finally:
            await served.end()

    @property
    def asgi(self) -> "AgentApp":
        """The agent as a plain ASGI application: runs alone, or mounted in Litestar, Starlette or FastAPI.

        Where it is mounted below a path, that belongs to its callback_url, and the host's lifespan is `lifespan`.
        """
        if self._app is None:
            from holdshort._asgi import AgentApp  # noqa: PLC0415  # a script that serves nothing needs none of it

            self._app = AgentApp(self)
        return self._app

    def run(self, host: str = "127.0.0.1", port: int = 8001, *, drain_seconds: int = 8) -> None:
        """Register at the control plane, and serve the reasoners until SIGTERM or Ctrl-C.

        The control plane gives runs to this process, and to the others of its node, as long as it gives signs of
        life; without it the agent is served all the same, and registers when it is there. On SIGTERM, running
        reasoners may finish for `drain_seconds`; waiting ones are handed back at once: not an end, not a failure.
        What has not finished then is given to another process.

        Callbacks are proven, calls of reasoners are not: whoever reaches this port can start runs of this agent and
        cancel those that go on. Let nobody but the control plane reach it.

        Args:
            host: address to listen on.
            port: to listen on; 0 for any free one.
            drain_seconds: how long running reasoners may go on.

        Raises:
            MissingExtra: the extra `agent` is not installed.
        """
        from holdshort._serving import serve  # noqa: PLC0415  # imports uvicorn

        serve(self, host, port, drain_seconds)

    def reachable_at(self, base_url: str) -> None:
        """Take this as the agent's address, unless one was configured, and register it if the agent is served."""
        self._callback_url = self._callback_url or base_url
        if self._app is not None:
            self._app.lifetime.changed()
