"""Deciding, ending and looking at approvals: each function is the inside of one transaction."""

from msgspec import Struct
from msgspec.structs import replace

from controlplane.domain import forms
from controlplane.domain.approvals import Approval, ApprovalStatus
from controlplane.domain.cases import Answer, Case, about, expire_due, settle
from controlplane.domain.deliveries import target_of
from controlplane.domain.errors import (
    AmbiguousRequestId,
    ApprovalChanged,
    ApprovalNotFound,
    ExecutionNotFound,
    FieldFault,
    NoApprovalRequest,
    OwnershipMismatch,
)
from controlplane.domain.events import Actor, Fact, FactType, acting_for
from controlplane.domain.executions import check_named_fence
from controlplane.domain.form_answers import answered
from controlplane.domain.ids import DELIVERY_PREFIX, names_approval
from controlplane.domain.outcomes import Outcome, outcome_of
from controlplane.storage import approvals, cases, deliveries, history
from controlplane.storage.approvals import Shown
from controlplane.storage.cases import NewId
from controlplane.storage.engine import Connection


class SeenByPerson(Struct, frozen=True, kw_only=True):
    """What a person had before the eyes when deciding; None leaves it unchecked."""

    payload_digest: str | None = None
    round: int | None = None


async def decide(  # what is decided, on what, and with which values
    conn: Connection,
    approval_id: str,
    answer: Answer,
    *,
    seen: SeenByPerson,
    new_id: NewId,
    values: bytes | None = None,
) -> Outcome:
    """Apply a person's or operator's decision, or return what stands.

    Args:
        conn: the transaction.
        approval_id: which approval.
        answer: the decision.
        seen: what the person had before their eyes.
        new_id: makes ids.
        values: what they give to its form, as JSON; None for nothing.

    Raises:
        ApprovalNotFound: no such approval.
        ApprovalChanged: another payload or round stands than the person saw.
        InvalidAnswer: it is pending, and the values do not fit its form, or nobody asked for any.
        FieldFault: a response of their own beside the values of a form.
    """
    case = await lock_approval(conn, approval_id, new_id)
    approval = case.approval(approval_id)
    if seen.payload_digest not in (None, approval.payload_digest) or seen.round not in (None, approval.round):
        raise ApprovalChanged(payload_digest=approval.payload_digest, round=approval.round)
    if approval.form is not None and answer.response is not None and answer.status is ApprovalStatus.APPROVED:
        raise FieldFault("response", "is made from the values where a question has a form; send values alone")
    answer = await fitted(conn, approval, answer if values is None else replace(answer, values=values))
    return await apply(conn, case, approval_id, answer, new_id)


async def end(  # what ends, how, and who says so under which fence
    conn: Connection,
    approval_id: str,
    status: ApprovalStatus,
    *,
    actor: Actor,
    new_id: NewId,
    fence: int | None = None,
) -> Shown:
    """Withdraw an approval, or expire it early (the asking program's own timeout); what stands already, stands.

    Raises:
        ApprovalNotFound: no such approval.
        StaleInstance: a fence is named, and another dispatch took the run over.
    """
    case = await lock_approval(conn, approval_id, new_id)
    check_named_fence(case.execution, fence)
    who = acting_for(actor, case.execution.node_id)
    await apply(conn, case, approval_id, Answer(status=status, actor=who), new_id)
    return await look(conn, approval_id)


async def set_callback(  # noqa: PLR0913  # as `end`
    conn: Connection,
    approval_id: str,
    *,
    url: str,
    secret: str | None,
    actor: Actor,
    new_id: NewId,
    fence: int | None = None,
) -> Shown:
    """Give an approval's callback another address and secret; one that is final already is told again.

    Raises:
        ApprovalNotFound: no such approval.
        StaleInstance: a fence is named, and another dispatch took the run over: the address does not move.
    """
    case = await lock_approval(conn, approval_id, new_id)
    check_named_fence(case.execution, fence)
    before = case.approval(approval_id)
    approval = replace(before, callback_url=url, callback_secret=secret)
    await approvals.set_callback(conn, approval_id, url, secret)
    who = acting_for(actor, approval.node_id)
    await history.record(conn, callback_changed(before, approval, who))
    if approval.final:
        await tell_again(conn, approval, who, new_id)
    return await look(conn, approval_id)


async def tell_again(conn: Connection, approval: Approval, actor: Actor, new_id: NewId) -> None:
    """Tell an end once more, at the approval's present address."""
    await deliveries.tell_again(conn, approval, new_id(DELIVERY_PREFIX))
    data = {"to": target_of(approval.callback_url or "")}
    await history.record(conn, about(approval, FactType.DELIVERY_TOLD_AGAIN, actor, data))


def callback_changed(before: Approval, after: Approval, actor: Actor) -> Fact:
    """What history says of another callback address: from where to where, without what may be secret in a path."""
    was, now = before.callback_url, after.callback_url
    data = {"from": None if was is None else target_of(was), "to": None if now is None else target_of(now)}
    return about(after, FactType.CALLBACK_CHANGED, actor, data)


async def look(conn: Connection, approval_id: str) -> Shown:
    """One approval.

    Raises:
        ApprovalNotFound: no such approval.
    """
    found = await approvals.get(conn, approval_id)
    if found is None:
        raise ApprovalNotFound
    return found


async def look_newest(
    conn: Connection, execution_id: str, request_id: str | None, *, node_id: str | None = None
) -> Shown:
    """The newest approval of an execution, or of one of its request ids (which may be an approval_id).

    Raises:
        NoApprovalRequest: the execution asked for none such, or there is no such execution.
        OwnershipMismatch: the execution is not `node_id`'s.
    """
    if request_id is not None and names_approval(request_id):
        found = await approvals.get(conn, request_id)
        found = found if found is not None and found.execution_id == execution_id else None
    else:
        found = await approvals.newest(conn, execution_id, request_id)
    if found is None:
        raise NoApprovalRequest
    check_owner(found.node_id, node_id)
    return found


async def note_read(conn: Connection, seen: list[Shown]) -> None:
    """Keep that an agent read ends that a further round may follow; the others need no such mark."""
    unread = [a.approval_id for a in seen if a.final and a.reopens and a.read_at is None]
    if unread:
        await approvals.mark_read(conn, unread)


async def meant(conn: Connection, execution_id: str, request_id: str | None, new_id: NewId) -> str:
    """Which approval of an execution an operator means; one past its deadline is no longer pending.

    Raises:
        ExecutionNotFound, NoApprovalRequest: there is none.
        AmbiguousRequestId: several are pending and none is named.
    """
    case = await lock_execution(conn, execution_id, new_id)
    if request_id is None:
        pending = case.pending()
        if len(pending) > 1:
            raise AmbiguousRequestId(
                "Several approvals of this execution are pending; name one with approval_request_id."
            )
        if pending:
            return pending[0].approval_id
    return (await look_newest(conn, execution_id, request_id)).approval_id


async def lock_approval(conn: Connection, approval_id: str, new_id: NewId) -> Case:
    """Lock an approval's execution, with every deadline that has passed kept as passed.

    Raises:
        ApprovalNotFound: no such approval.
    """
    locked = await cases.lock_by_approval(conn, approval_id)
    if locked is None:
        raise ApprovalNotFound
    return await pass_deadlines(conn, locked, new_id)


async def lock_execution(
    conn: Connection, execution_id: str, new_id: NewId, *, request_id: str | None = None, node_id: str | None = None
) -> Case:
    """Lock an execution with the rounds under a request id, every deadline that has passed kept as passed.

    Raises:
        ExecutionNotFound: no such execution.
        OwnershipMismatch: the execution is not `node_id`'s.
    """
    locked = await cases.lock(conn, execution_id, request_id=request_id)
    if locked is None:
        raise ExecutionNotFound
    check_owner(locked.execution.node_id, node_id)
    return await pass_deadlines(conn, locked, new_id)


async def pass_deadlines(conn: Connection, locked: Case, new_id: NewId) -> Case:
    """Expire what is due before anything else is decided, and keep that whatever the rest comes to."""
    case = expire_due(locked)
    if case.facts:
        await cases.save(conn, [(locked, case)], new_id)
        conn.keep()
    return replace(case, facts=(), tellings=())


async def fitted(conn: Connection, approval: Approval, answer: Answer) -> Answer:
    """An answer with its values judged against the approval's form; what is final already needs no judging.

    Raises:
        InvalidAnswer: an approval whose values do not fit, or values that nobody asked for.
    """
    if approval.final or (approval.form is None and answer.values is None):
        return answer
    form = None if approval.form is None else forms.stored(approval.form)
    editable = form is not None and form.editable
    return answered(form, answer, await approvals.payload_of(conn, approval.approval_id) if editable else None)


async def apply(conn: Connection, case: Case, approval_id: str, answer: Answer, new_id: NewId) -> Outcome:
    """Settle a pending approval and write it, or say what stands."""
    after = settle(case, approval_id, answer)
    await cases.save(conn, [(case, after)], new_id)
    return outcome_of(after, approval_id, applied=not case.approval(approval_id).final)


def check_owner(owner: str, node_id: str | None) -> None:
    """Raise `OwnershipMismatch` when a node is named and it is not the owner."""
    if node_id is not None and owner != node_id:
        raise OwnershipMismatch
