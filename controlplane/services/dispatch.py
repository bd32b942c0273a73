"""Dispatching: claim runs for instances, settle what came of the tries; the send between is in no transaction."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from controlplane.domain import cases as rules
from controlplane.domain import runs
from controlplane.domain.cases import Case
from controlplane.domain.deliveries import Attempt
from controlplane.domain.dispatching import AGENT_UNREACHABLE, Dispatch, DispatchKind, Order, Settling, Verdict
from controlplane.domain.events import DISPATCHER, Actor
from controlplane.domain.executions import HANDED_BACK, INSTANCE_GONE, ExecutionStatus
from controlplane.domain.fleets import Fleet
from controlplane.domain.nodes import Instance
from controlplane.storage import cases, dispatches, executions
from controlplane.storage.cases import NewId
from controlplane.storage.dispatches import Due, Hungry, Settled, Taking
from controlplane.storage.engine import Connection

NODES_A_CLAIM = 32
# How many tries one process makes at one node at once, so that an address where they hang takes no room from others.
TRIES_A_NODE = 64
UNSERVED_SECONDS = 5.0
_PERHAPS_TAKEN = "the process that sent it was not heard of again; the agent may have it"


class Tried(Struct, frozen=True):
    """What a try came to: the dispatch as claimed, its verdict, and the reply's status."""

    sent: Dispatch
    verdict: Verdict
    attempt: Attempt


async def claim(
    conn: Connection, *, limit: int, in_hand: Mapping[str, int], concurrency: int, new_id: NewId
) -> list[Dispatch]:
    """Claim what is due for nodes that have an instance with room, each run under a new fence.

    Args:
        conn: the open transaction.
        limit: how many at most.
        in_hand: how many tries the caller has under way, by node.
        concurrency: how many runs a node works on at once where its registration names no number.
        new_id: makes ids.
    """
    hungry = await dispatches.lock_hungry(conn, NODES_A_CLAIM, concurrency=concurrency)
    if not hungry:
        return []
    fleets = await _fleets(conn, hungry, concurrency)
    known = {one.node_id: one for one in hungry}
    rooms = {
        node_id: max(0, min(limit, fleet.room, TRIES_A_NODE - in_hand.get(node_id, 0)))
        for node_id, fleet in fleets.items()
    }
    locked = await dispatches.lock_due(conn, rooms)
    found = {case.execution.execution_id: case for case in await cases.lock_all(conn, locked)}
    claimed: list[Dispatch] = []
    changes: list[tuple[Case, Case]] = []
    taking: list[Taking] = []
    for place in await dispatches.due(conn, locked):
        if len(claimed) == limit:
            break
        before = found[place.execution_id]
        after, instance, why = _assign(before, place, fleets[before.execution.node_id])
        changes.append((before, after))
        if instance is None:
            taking.append(Taking(place.execution_id, None, UNSERVED_SECONDS, why))
        else:
            taking.append(Taking(place.execution_id, instance.instance_id))
            claimed.append(_dispatch(after, place, instance, known[instance.node_id]))
    await dispatches.take(conn, taking)
    await cases.save(conn, changes, new_id)
    return claimed


async def settle(conn: Connection, tried: Sequence[Tried], new_id: NewId) -> set[str]:
    """Write what tries came to; return the executions whose claim was still held, the others are left alone."""
    failed = [one for one in tried if one.verdict.settling is not Settling.HAS_IT]
    locked = {c.execution.execution_id: c for c in await cases.lock_all(conn, [t.sent.execution_id for t in failed])}
    held = await dispatches.held(conn, {one.sent.execution_id: one.sent.claim for one in tried})
    for one in failed:
        if one.sent.execution_id in held:
            await _apply(conn, locked[one.sent.execution_id], one, new_id)
    await dispatches.settle(conn, [_settled(one) for one in tried if one.sent.execution_id in held])
    return held


async def end_out_of_time(conn: Connection, *, limit: int, new_id: NewId) -> int:
    """End runs whose limit of running time has passed; return how many were looked at."""
    late = await cases.lock_out_of_time(conn, limit)
    await cases.save(conn, [(case, runs.run_out_of_time(case)) for case in late], new_id)
    return len(late)


async def give_up_unstarted(conn: Connection, *, limit: int, new_id: NewId) -> int:
    """Fail runs that no agent took in the time they were given; return how many were looked at."""
    late = await dispatches.unstarted(conn, limit)
    locked = await cases.lock_all(conn, late)
    errors = await dispatches.last_errors(conn, late)
    ending = [case for case in locked if case.execution.execution_id in errors]
    await cases.save(conn, [(case, runs.give_up(case, AGENT_UNREACHABLE)) for case in ending], new_id)
    for case in ending:
        run = case.execution
        why = errors[run.execution_id] or f"no instance of {run.node_id} was there"
        await executions.keep_outcome(conn, run.execution_id, None, why)
    return len(late)


async def next_out_of_time_in(conn: Connection) -> float | None:
    """Seconds until the next run's limit passes, below zero when overdue; None where nothing is limited."""
    return await executions.next_out_of_time_in(conn)


async def release_from_the_gone(conn: Connection, *, limit: int, new_id: NewId) -> int:
    """Take executions from instances that are gone, so that others run them; return how many."""
    orphans = await cases.lock_held_by_the_gone(conn, limit)
    await cases.save(conn, [(case, runs.release(case, INSTANCE_GONE)) for case in orphans], new_id)
    return len(orphans)


async def hand_back(
    conn: Connection, instance_id: str, fences: Mapping[str, int], *, actor: Actor, new_id: NewId
) -> list[str]:
    """Take executions that an instance gives back while it stops; return those that were its own under this fence."""
    locked = await cases.lock_all(conn, sorted(fences))
    mine = [
        case
        for case in locked
        if case.execution.instance_id == instance_id and case.execution.fence == fences[case.execution.execution_id]
    ]
    await cases.save(conn, [(case, runs.release(case, HANDED_BACK, actor)) for case in mine], new_id)
    return [case.execution.execution_id for case in mine]


async def _fleets(conn: Connection, hungry: Sequence[Hungry], concurrency: int) -> dict[str, Fleet]:
    found = await dispatches.fleet(conn, [one.node_id for one in hungry])
    at_work = await dispatches.at_work(conn, [instance.instance_id for instance in found])
    return {
        one.node_id: Fleet(
            [instance for instance in found if instance.node_id == one.node_id],
            at_work,
            one.max_concurrent or concurrency,
        )
        for one in hungry
    }


def _assign(case: Case, place: Due, fleet: Fleet) -> tuple[Case, Instance | None, str | None]:
    """The case given to an instance; none where the run fails instead, or nobody who serves it is there."""
    if place.kind is DispatchKind.CANCEL:
        holder = fleet.named(case.execution.instance_id)
        return (case, holder, None) if holder else (rules.with_execution(case, order=Order.NOTHING), None, None)
    if place.written and not case.execution.replay:
        # It may well have started: such a node's runs are never started twice.
        return rules.with_execution(case, order=Order.NOTHING), None, _PERHAPS_TAKEN
    instance = fleet.take(place.reasoner or "", avoid=place.last_instance_id if place.attempts else None)
    if instance is None:
        return case, None, f"no instance of {case.execution.node_id} serves {place.reasoner}"
    after = runs.dispatch(case, instance)
    return after, instance if after.execution.fence > case.execution.fence else None, None


def _dispatch(case: Case, place: Due, instance: Instance, node: Hungry) -> Dispatch:
    run = case.execution
    return Dispatch(
        execution_id=run.execution_id,
        node_id=run.node_id,
        kind=place.kind,
        claim=place.claim + 1,
        fence=run.fence,
        attempts=place.attempts + 1,
        base_url=instance.base_url,
        instance_id=instance.instance_id,
        replay=instance.replay,
        taken=place.taken,
        reasoner=place.reasoner or "",
        skill=place.reasoner in node.skills,
        allow=node.allow,
        input=place.input,
        reason=run.status_reason,
        run_id=place.run_id,
        parent_execution_id=place.parent_execution_id,
        steps=place.steps,
        time_left=run.time_left,
        start_by=place.start_by,
        now=case.at,
    )


async def _apply(conn: Connection, case: Case, tried: Tried, new_id: NewId) -> None:
    """What a failed try does to its run."""
    sent, verdict = tried.sent, tried.verdict
    if sent.kind is DispatchKind.CANCEL or not runs.is_open(case.execution, sent.fence):
        return
    if verdict.settling is Settling.AGAIN:
        after = runs.undispatch(case)
    elif verdict.settling is Settling.ANSWERED:
        after = rules.report(case, ExecutionStatus.SUCCEEDED, DISPATCHER)
    else:
        after = runs.give_up(case, verdict.reason or "")
    await cases.save(conn, [(case, after)], new_id)
    if verdict.reply is not None:
        await executions.keep_reply(conn, sent.execution_id, verdict.reply)
    if verdict.settling is not Settling.AGAIN:
        await executions.keep_outcome(conn, sent.execution_id, verdict.result, verdict.error)


def _settled(one: Tried) -> Settled:
    retry = one.verdict.retry_in
    seconds = None if retry is None else retry.total_seconds()
    return Settled(one.sent.execution_id, one.sent.claim, seconds, one.attempt.status, one.verdict.error)
