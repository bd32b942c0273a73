"""Asking for approvals: open a round or find the one that stands, and use the answer that came before its question."""

from msgspec.structs import replace

from controlplane.domain import asking, parking
from controlplane.domain.approvals import Approval
from controlplane.domain.asking import Asked, Found
from controlplane.domain.cases import Answer, Case, about, settle
from controlplane.domain.errors import InvalidAnswer
from controlplane.domain.events import Actor, ActorKind, Fact, FactType, acting_for
from controlplane.domain.executions import check_fence
from controlplane.domain.form_answers import of_sender
from controlplane.domain.ids import APPROVAL_PREFIX
from controlplane.domain.outcomes import outcome_of
from controlplane.domain.parking import Choice, Parked
from controlplane.domain.runs import prove
from controlplane.services.approvals import callback_changed, fitted, lock_execution, tell_again
from controlplane.storage import approvals, cases, history, outbox, parked
from controlplane.storage.approvals import Wording
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection


async def ask(  # noqa: PLR0913  # what is asked, and who asks it under which fence
    conn: Connection,
    asked: Asked,
    wording: Wording,
    *,
    actor: Actor,
    new_id: NewId,
    node_id: str | None = None,
    fence: int | None = None,
) -> Approval:
    """Open a round or return the one that stands, refreshing its callback; see `domain.asking`.

    Raises:
        ExecutionNotFound: no such execution.
        OwnershipMismatch: the execution is not `node_id`'s.
        StaleInstance: another dispatch took the run over.
        ApprovalRequestConflict, RoundNotOpen, InvalidState: as `domain.asking.resolve`.
    """
    await parked.lock_asking(conn, asked.approval_request_id)
    locked = await lock_execution(
        conn, asked.execution_id, new_id, request_id=asked.approval_request_id, node_id=node_id
    )
    check_fence(locked.execution, fence)
    case = prove(locked)
    found = asking.resolve(case, asked, told=await _told(conn, case, asked))
    asker = acting_for(actor, case.execution.node_id)
    if isinstance(found, Found):
        await cases.save(conn, [(locked, case)], new_id)
        return await _refresh(conn, found, asked, asker, new_id)
    after = asking.opened(case, asked, found, new_id(APPROVAL_PREFIX), asker)
    approval = after.approvals[-1]
    await approvals.insert(conn, approval, wording)
    if found.round == 1:
        after = await _use_parked(conn, after, approval)
    await cases.save(conn, [(locked, after)], new_id)
    return after.approval(approval.approval_id)


async def _told(conn: Connection, case: Case, asked: Asked) -> bool:
    """Whether the newest round's end is known to its agent; only asks without a round depend on it."""
    rounds = [a for a in case.approvals if a.approval_request_id == asked.approval_request_id]
    if asked.round is not None or not rounds:
        return True
    newest = max(rounds, key=lambda a: a.round)
    if not newest.reopens or newest.callback_url is None or newest.read_at is not None:
        return True
    return await outbox.told(conn, newest.approval_id)


async def _refresh(conn: Connection, found: Found, asked: Asked, actor: Actor, new_id: NewId) -> Approval:
    approval = found.approval
    if asked.callback_url is not None:
        approval = replace(approval, callback_url=asked.callback_url, callback_secret=asked.callback_secret)
        await approvals.set_callback(conn, approval.approval_id, asked.callback_url, asked.callback_secret)
    if approval.callback_url != found.approval.callback_url:
        await history.record(conn, callback_changed(found.approval, approval, actor))
    if found.tell:
        await tell_again(conn, approval, actor, new_id)
    return approval


async def _use_parked(conn: Connection, case: Case, approval: Approval) -> Case:
    """Apply the answer that came before its question, if there is one, and drop the others."""
    waiting = await parked.take_waiting(conn, approval.approval_request_id, approval.execution_id)
    if not waiting:
        return case
    answers = {p.parked_id: await _fitting(conn, approval, p) for p in waiting}
    unfit = [p for p in waiting if answers[p.parked_id] is None]
    choice = parking.choose(tuple(p for p in waiting if p not in unfit), approval.decided_by)
    answer = None if choice.used is None else answers[choice.used.parked_id]
    if answer is not None:
        case = settle(case, approval.approval_id, answer)
        await _remember(conn, case, approval.approval_id, choice)
    await parked.remove(conn, [p.parked_id for p in waiting])
    facts = [_parked_fact(p, approval, FactType.WEBHOOK_DROPPED) for p in choice.dropped]
    facts += [_parked_fact(p, approval, FactType.WEBHOOK_DROPPED, reason=InvalidAnswer.code) for p in unfit]
    if choice.used is not None:
        facts.append(_parked_fact(choice.used, approval, FactType.WEBHOOK_USED))
    return replace(case, facts=(*case.facts, *facts))


async def _remember(conn: Connection, case: Case, approval_id: str, choice: Choice) -> None:
    """Let every early answer be recognised when it comes again: each meant this approval."""
    used, late = (outcome_of(case, approval_id, applied=applied) for applied in (True, False))
    for entry in (choice.used, *choice.dropped):
        if entry is not None:
            await parked.remember(conn, entry.sender, entry.own_keys(), used if entry is choice.used else late)
            await parked.remember(conn, entry.sender, entry.keys_of_rivals(), late)


async def _fitting(conn: Connection, approval: Approval, entry: Parked) -> Answer | None:
    """The answer that was parked, or None when it is none to what is asked: it is as if it had been refused."""
    actor = Actor(ActorKind.SENDER, entry.sender, "parked_webhook")
    answer = Answer(status=entry.decision, actor=actor, feedback=entry.feedback, response=entry.response)
    if approval.form is None:
        return answer
    try:
        return await fitted(conn, approval, of_sender(answer))
    except InvalidAnswer:
        return None


def _parked_fact(entry: Parked, approval: Approval, type_: FactType, **more: str) -> Fact:
    actor = Actor(ActorKind.SENDER, entry.sender, "parked_webhook")
    data = {"parked_id": entry.parked_id, "decision": entry.decision, **more}
    return replace(about(approval, type_, actor), data=data)
