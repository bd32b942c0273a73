"""Runs: an execution in the hands of an instance, and every way it passes from one to another.

As `domain.cases`, each function takes a case as it was locked and returns it as it must be written.
"""

from controlplane.domain.cases import Case, about_run, end, move, record, with_execution
from controlplane.domain.dispatching import Order
from controlplane.domain.events import DISPATCHER, RECOVERY, SWEEPER, Actor, FactType
from controlplane.domain.executions import (
    DISPATCH_FAILED,
    EXECUTION_TIMEOUT,
    STALLS_LIMIT,
    TOO_MANY_RESTARTS,
    Execution,
    ExecutionStatus,
)
from controlplane.domain.nodes import Instance


def dispatch(case: Case, instance: Instance) -> Case:
    """Give the execution to an instance under a new fence; whoever had it before can no longer write.

    A waiting run stays waiting, and one that has ended stays ended: its code is to see that. A run that was dispatched
    ten times without getting further fails instead.
    """
    run = case.execution
    if run.stalls >= STALLS_LIMIT:
        return give_up(case, TOO_MANY_RESTARTS)
    case = with_execution(
        case,
        fence=run.fence + 1,
        instance_id=instance.instance_id,
        replay=instance.replay,
        fenced=instance.fenced,
        proven=False,
        stalls=run.stalls + 1,
    )
    data = {"fence": run.fence + 1, "instance_id": instance.instance_id}
    case = record(case, about_run(run, FactType.EXECUTION_DISPATCHED, DISPATCHER, data))
    if run.status in {ExecutionStatus.QUEUED, ExecutionStatus.RUNNING}:
        reason = None if run.status is ExecutionStatus.QUEUED else run.status_reason
        case = move(case, ExecutionStatus.RUNNING, reason, DISPATCHER)
    return case


def is_open(run: Execution, fence: int) -> bool:
    """True while nobody but the failed try under this fence says what becomes of the run.

    One that gave a sign, ended, or was dispatched again since is in somebody's hands.
    """
    return run.fence == fence and not run.proven and run.wants_an_agent


def undispatch(case: Case) -> Case:
    """Take a try back that certainly, or under a fence harmlessly, came to nothing.

    A queued run keeps its last holder, who may still give a sign; one that waits, or has ended, is in nobody's hands
    again: its answer must not find it held, and its time running, where nobody works on it.
    """
    run = case.execution
    case = with_execution(case, stalls=max(0, run.stalls - 1))
    if run.status is ExecutionStatus.RUNNING:
        return move(case, ExecutionStatus.QUEUED, DISPATCH_FAILED, DISPATCHER, worked=False)
    return with_execution(case, instance_id=None)


def prove(case: Case) -> Case:
    """Keep that the run's holder gave a sign under the present fence: it runs, whatever became of the try's reply.

    A run that was released keeps its place in the queue: whoever gave the sign counted as gone, and may be gone next.
    """
    run = case.execution
    if not run.wants_an_agent or run.fence == 0:
        return case
    if not run.proven:
        released = run.replay and run.instance_id is None
        case = with_execution(case, proven=True, order=Order.RUN if released else Order.NOTHING)
    if run.status is ExecutionStatus.QUEUED:
        case = move(case, ExecutionStatus.RUNNING, None, DISPATCHER)
    return case


def release(case: Case, reason: str, actor: Actor = RECOVERY) -> Case:
    """Take the execution from an instance that is gone, or hands it back.

    What can be repeated is dispatched again: a running run at once, a waiting one when it has an answer (at once where
    its reasoner says so), an ended one so that its code sees the end. A node that knows no replay keeps its run as it
    is: nobody repeats it, and its answers are told to where the node is then.
    """
    run = case.execution
    if run.instance_id is None or not run.wants_an_agent:
        return case
    data = {"fence": run.fence, "instance_id": run.instance_id, "reason": reason}
    case = record(case, about_run(run, FactType.EXECUTION_RELEASED, actor, data))
    case = with_execution(case, instance_id=None, order=_order_of_released(case))
    if run.status is ExecutionStatus.RUNNING:
        to = ExecutionStatus.QUEUED if run.replay else ExecutionStatus.RUNNING
        # What died with its process is done again, so it does not count against the limit.
        case = move(case, to, reason if run.replay else run.status_reason, actor, worked=False)
    return case


def give_up(case: Case, reason: str) -> Case:
    """End a run that no agent can be brought to run; one that has ended already keeps its end."""
    if case.execution.final:
        return with_execution(case, outcome_pending=False, order=Order.NOTHING)
    return end(case, ExecutionStatus.FAILED, reason, DISPATCHER)


def run_out_of_time(case: Case) -> Case:
    """End a run whose limit of running time has passed; its agent is told to stop."""
    deadline = case.execution.work_deadline
    if deadline is None or case.at < deadline:
        return case
    return end(case, ExecutionStatus.TIMEOUT, EXECUTION_TIMEOUT, SWEEPER, order=Order.CANCEL)


def stop_clock(case: Case) -> Case:
    """Count no work from here on, as the run waits for a person, though not for an approval."""
    run = case.execution
    if run.running_since is None:
        return case
    worked = run.worked_seconds + (case.at - run.running_since).total_seconds()
    return with_execution(case, running_since=None, worked_seconds=worked)


def let_clock_go_on(case: Case) -> Case:
    """Count work again: nothing that the run asked is open any more."""
    run = case.execution
    works = run.status is ExecutionStatus.RUNNING and (run.instance_id is not None or not run.dispatched)
    return with_execution(case, running_since=case.at) if works and run.running_since is None else case


def _order_of_released(case: Case) -> Order | None:
    run = case.execution
    if run.status is ExecutionStatus.QUEUED:
        return Order.RUN  # its last try came to nothing, so whatever the node knows, nobody has it
    if not run.replay:
        # Whoever has it in hand settles it: what was not written yet goes to another instance, what was never does.
        return None
    rests = run.status is ExecutionStatus.WAITING and not run.resume_at_start
    return Order.NOTHING if rests else Order.RUN
