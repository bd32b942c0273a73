"""What an agent's runs need: a client on each event loop, an address for callbacks, and an end that is reported."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from holdshort import _errors, _routes
from holdshort._client import AsyncClient
from holdshort._origin import base_url
from holdshort._pauses import Registry
from holdshort._rounds import Rounds
from holdshort._runs import Run, current_run, said
from holdshort._session import Session, Sessions

if TYPE_CHECKING:
    from holdshort._transport import AsyncTransport

Callback = Literal["push", "pull", "auto"]
CALLBACK_PATH = "/webhooks/approval"
_START_S = 30.0


class Runner:
    """Starts the runs of one agent; its base class.

    Args:
        node_id: the agent's name.
        address: of the control plane, and the API key.
        callback_url: base URL where the control plane reaches this agent, if one was given.
        callback: how answers come.
    """

    def __init__(
        self, node_id: str, address: tuple[str | None, str | None], callback_url: str | None, callback: Callback
    ) -> None:
        if callback not in {"push", "pull", "auto"}:
            raise ValueError(f'callback must be "push", "pull" or "auto", not {callback!r}')
        self.node_id = node_id
        self.registry = Registry(lambda: secrets.token_urlsafe(24))
        self._callback: Callback = callback
        self._callback_url = callback_url or os.environ.get("HOLDSHORT_CALLBACK_URL")
        self._address = address
        self._transport: AsyncTransport | None = None
        self.sessions = Sessions(self._open_session)
        self._rounds: dict[str, Rounds] = {}

    @asynccontextmanager
    async def execution(
        self,
        execution_id: str | None = None,
        input: Any = None,  # noqa: A002  # the wire's own word
        *,
        reasoner: str | None = None,
    ) -> AsyncIterator[Run]:
        """A run that the program starts itself; the same id continues it. Its end is reported when the block ends.

        An exception ends it as failed. A cancelled task, Ctrl-C or a stopping process is no end: the run stays as it
        is, to be continued.

        Args:
            execution_id: 1-128 of `A-Z a-z 0-9 . _ ~ : -`; a new one when absent.
            input: any JSON, kept with the run.
            reasoner: name kept with the run.

        Raises:
            ExecutionFinished: the run under this id is over.
            ExecutionExists: another node owns it.
            ConnectionFailed: the control plane was not reached in 30 s.
        """
        async with self.sessions.use() as session:
            started = _routes.create_execution(
                self.node_id, execution_id or f"exec_{uuid4().hex}", reasoner=reasoner, input=input
            )
            standing = await session.client.send(started, patience=_START_S)
            if standing.final and not standing.ended_by_approval:
                raise _errors.ExecutionFinished(
                    f"execution {standing.execution_id} is {standing.status} already; start a new one",
                    details={"execution_status": standing.status, "execution": standing},
                )
            async with self.running(Run(self, session, standing, stored_steps=None if execution_id else 0)) as run:
                yield run

    @asynccontextmanager
    async def running(self, run: Run) -> AsyncIterator[Run]:
        """Let the block's code be this run's, and report how it ends."""
        token = current_run.set(run)
        try:
            async with _reported(run):
                with run.steps.begun():
                    yield run
        finally:
            current_run.reset(token)

    def use_transport(self, transport: "AsyncTransport") -> None:
        """Send through this instead of the network, see `holdshort.testing`."""
        self._transport = transport

    @property
    def control_plane_url(self) -> str:
        """Where the control plane is."""
        return base_url(self._address[0])

    @property
    def base_url(self) -> str | None:
        """Where the control plane reaches this agent; None while that is not known."""
        return self._callback_url and self._callback_url.rstrip("/")

    def client(self) -> AsyncClient:
        """A client of the control plane that tries for as long as its caller waits."""
        url, key = self._address
        return AsyncClient(url, key, patience=None, transport=self._transport)

    def _open_session(self) -> Session:
        return Session(self.client(), self.registry, held=self._callback != "push")

    def _callback_target(self) -> str | None:
        if self._callback == "pull":
            return None
        if self.base_url is None:
            if self._callback == "push":
                raise _errors.CallbackUnknown
            return None
        return self.base_url + CALLBACK_PATH

    @property
    def execution_id(self) -> str | None:
        """The id of the run that this code is part of, None outside one.

        Give it to whoever will decide, so that an answer can name the run that it is for (`executionId`).
        """
        run = self._run()
        return None if run is None else run.execution_id

    def _run(self) -> Run | None:
        run = current_run.get()
        return run if run is not None and run.owner is self else None

    def _asker(self, run: Run | None, execution_id: str | None) -> tuple[Rounds, str]:
        if run is not None and execution_id in {None, run.execution_id}:
            return run.rounds, run.execution_id
        if execution_id is None:
            raise _errors.NoExecution
        return self._rounds.setdefault(execution_id, Rounds()), execution_id


def is_cancelled() -> bool:
    """True when this task itself is cancelled, rather than one that it awaits."""
    task = asyncio.current_task()
    return task is not None and bool(task.cancelling())


@asynccontextmanager
async def _reported(run: Run) -> AsyncIterator[None]:
    """Report how the block ends. What is no end of the run, only of this process, is not reported."""
    try:
        with run.given_away(), run.leaving_nothing(), _errors.one_end():
            yield
        run.settle()
    except _errors.ExecutionCancelled as end:
        await run.report("cancelled", error=end.message)
        raise
    except _errors.RunEnded as end:
        if end.fails_as is not None:
            await run.report("failed", error=said(end), reason=end.fails_as)
        raise
    except asyncio.CancelledError as error:
        if not is_cancelled():
            # Nobody cancelled this run: a task it awaited was cancelled, and that is the run's own failure.
            await run.report("failed", error=said(error))
        raise
    except Exception as error:
        reason = error.fails_as if isinstance(error, _errors.HoldshortError) else None
        await run.report("timeout" if run.out_of_time else "failed", error=said(error), reason=reason)
        raise
    try:
        await run.report("succeeded")
    except _errors.BadRequest as refused:
        # A result that the control plane will not store: a run that can never report would stay running for ever.
        run.result = None
        await run.report("failed", error=said(refused))
        raise
