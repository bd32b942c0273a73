"""Calls of an agent's reasoners: one task a run, joined by its execution id, answered as HTTP without any I/O."""

import asyncio
from typing import Any

from holdshort import _errors
from holdshort._agent import Agent
from holdshort._answers import Answered, invalid, problem, stopping
from holdshort._reasoners import Reasoner
from holdshort._runs import Run, said
from holdshort._wire import Execution


class Calls:
    """The runs in progress, by execution id.

    Args:
        agent: whose reasoners are called.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._running: dict[str, tuple[str, asyncio.Task[Answered]]] = {}
        self._unnamed: set[asyncio.Task[Answered]] = set()

    async def call(self, name: str, raw: Any, execution_id: str | None) -> Answered:
        """Run a reasoner to its end. A caller that goes away does not end the run.

        Args:
            name: of the reasoner.
            raw: its input, decoded JSON.
            execution_id: continues this execution, or joins the call that runs it.
        """
        if self._agent.registry.draining:
            return stopping()
        reasoner = self._agent.reasoners.get(name)
        if reasoner is None:
            return problem(404, "reasoner_not_found", f"there is no reasoner {name!r} here")
        if execution_id is not None and execution_id in self._running:
            running, task = self._running[execution_id]
            if running != name:
                return problem(409, "execution_exists", f"execution {execution_id} is running {running!r}")
            return await asyncio.shield(task)
        try:
            arguments = reasoner.arguments(raw)
        except _errors.InvalidInput as fault:
            return invalid(fault.field, fault.rule)
        return await asyncio.shield(self._start(reasoner, arguments, raw, execution_id))

    def _start(
        self, reasoner: Reasoner, arguments: dict[str, Any], raw: Any, execution_id: str | None
    ) -> "asyncio.Task[Answered]":
        run = self._run(reasoner, arguments, raw, execution_id)
        task = asyncio.create_task(run, name=f"holdshort {reasoner.name}")
        if execution_id is None:
            self._unnamed.add(task)
            task.add_done_callback(self._unnamed.discard)
        else:
            self._running[execution_id] = (reasoner.name, task)
            task.add_done_callback(lambda _: self._running.pop(execution_id, None))
        return task

    async def stop(self) -> None:
        """Hand back what still runs: the process stops, the runs do not end."""
        self._agent.registry.hand_back()
        tasks = [*self._unnamed, *(task for _, task in self._running.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, reasoner: Reasoner, arguments: dict[str, Any], raw: Any, execution_id: str | None) -> Answered:
        run: Run | None = None
        try:
            execution = self._agent.execution(execution_id, raw, reasoner=reasoner.name)
            async with execution as run, run.limit(reasoner.timeout_seconds):
                work = reasoner.call(arguments)
                run.result = await (work if reasoner.plain else run.code(work))
            return _ended(run.execution_id, run.status, run.result)
        except _errors.RunEnded as end:
            return _stopped(end, run)
        except asyncio.CancelledError as error:
            return _failed(error, run) if run and run.status == "failed" else _stopped(_errors.HandedBack(), run)
        except Exception as error:  # whatever the user's code raises is the run's failure, and already reported
            return _refused(error) if run is None else _failed(error, run)


def _ended(execution_id: str, status: str, result: Any) -> Answered:
    return Answered(200, {"execution_id": execution_id, "status": status, "result": result})


def _named(run: Run | None) -> dict[str, Any]:
    return {"execution_id": run.execution_id} if run else {}


def _stopped(end: _errors.RunEnded, run: Run | None) -> Answered:
    if isinstance(end, _errors.HandedBack):
        return stopping(end, **_named(run))
    status = run.status if run else "cancelled"
    return problem(409, end.code, end.message, execution_status=status, **_named(run))


def _failed(error: BaseException, run: Run) -> Answered:
    code = "execution_timeout" if run.out_of_time else "run_failed"
    return problem(500, code, said(error), execution_status=run.status, **_named(run))


def _refused(error: Exception) -> Answered:
    """The run did not start: it is over already, or the control plane would not have it."""
    if not isinstance(error, _errors.HoldshortError):
        return problem(500, "internal_error", type(error).__name__)
    standing = error.details.get("execution")
    if isinstance(standing, Execution):
        return _as_it_ended(standing)
    # The key that was refused is this agent's own, not its caller's.
    status = 503 if isinstance(error, _errors.KeyRefused | _errors.WrongScope) else error.status or 503
    more = {k: v for k, v in error.details.items() if k != "execution"}
    return problem(status, error.code, error.message, **more)


def _as_it_ended(standing: Execution) -> Answered:
    if standing.status == "succeeded":
        return _ended(standing.execution_id, standing.status, standing.result)
    known = {"execution_id": standing.execution_id, "execution_status": standing.status}
    if standing.status == "cancelled":
        message = f"cancelled: {standing.status_reason}"
        return problem(409, _errors.ExecutionCancelled.code, message, result=standing.result, **known)
    code = "execution_timeout" if standing.status == "timeout" else "run_failed"
    return problem(500, code, str(standing.error or standing.status), **known)
