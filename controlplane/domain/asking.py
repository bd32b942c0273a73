"""Asking: what a request for an approval opens, or what it finds standing. Asking again is always safe."""

from datetime import timedelta

from msgspec import Struct

from controlplane.domain.approvals import Approval, ApprovalStatus, OnExpiry
from controlplane.domain.cases import Case, open_approval
from controlplane.domain.errors import ApprovalRequestConflict, InvalidState, RoundNotOpen
from controlplane.domain.events import Actor
from controlplane.domain.executions import MAY_ASK
from controlplane.domain.forms import alike

# An unnamed round that ended in another way is told again whatever is asked: its answer covers no action.
_BINDS_PAYLOAD = frozenset({ApprovalStatus.PENDING, ApprovalStatus.APPROVED, ApprovalStatus.REJECTED})


class Asked(Struct, frozen=True, kw_only=True):
    """A checked request for an approval; `round` None leaves the choice to the server."""

    execution_id: str
    approval_request_id: str
    expires_in: timedelta
    on_expiry: OnExpiry = OnExpiry.CANCEL
    round: int | None = None
    approval_request_url: str | None = None
    callback_url: str | None = None
    callback_secret: str | None = None
    payload_digest: str | None = None
    decided_by: str | None = None
    form: bytes | None = None


class Found(Struct, frozen=True):
    """An approval that stands already; `tell` says that its agent is to be told (again)."""

    approval: Approval
    tell: bool


class Opening(Struct, frozen=True):
    """The round that may be opened."""

    round: int


def resolve(case: Case, asked: Asked, *, told: bool) -> Found | Opening:
    """Which round is meant, and whether it stands or is to be opened.

    Args:
        case: the execution with every round under this id; what is due has been expired.
        asked: the request.
        told: the newest round's end is known to its agent (delivered or read), or it has no callback.

    Raises:
        ApprovalRequestConflict: the round stands for another payload, form or on_expiry.
        RoundNotOpen: the named round cannot be opened now.
        InvalidState: a round would open, but the execution is over or never started.
    """
    rounds = {a.round: a for a in case.approvals if a.approval_request_id == asked.approval_request_id}
    newest = rounds[max(rounds)] if rounds else None
    wanted = _wanted_round(case, asked, newest, told=told)
    if wanted in rounds:
        found = rounds[wanted]
        if asked.round is not None or found.status in _BINDS_PAYLOAD:
            _check_same(found, asked)
        return Found(found, tell=found.final and (asked.callback_url is not None or not told))
    _check_open(wanted, newest)
    _check_state(case)
    return Opening(wanted)


def opened(case: Case, asked: Asked, opening: Opening, approval_id: str, actor: Actor) -> Case:
    """The case with the new round pending and the execution waiting; its deadline counts from the case's moment."""
    approval = Approval(
        approval_id=approval_id,
        execution_id=case.execution.execution_id,
        node_id=case.execution.node_id,
        approval_request_id=asked.approval_request_id,
        round=opening.round,
        status=ApprovalStatus.PENDING,
        on_expiry=asked.on_expiry,
        requested_at=case.at,
        expires_at=case.at + asked.expires_in,
        approval_request_url=asked.approval_request_url,
        payload_digest=asked.payload_digest,
        decided_by=asked.decided_by,
        form=asked.form,
        callback_url=asked.callback_url,
        callback_secret=asked.callback_secret,
    )
    return open_approval(case, approval, actor)


def _wanted_round(case: Case, asked: Asked, newest: Approval | None, *, told: bool) -> int:
    if asked.round is not None:
        return asked.round
    if newest is None:
        return 1
    if not newest.reopens or not told or case.execution.final:
        return newest.round
    return newest.round + 1


def _check_same(found: Approval, asked: Asked) -> None:
    same_form = found.form == asked.form or alike(found.form, asked.form)
    if found.payload_digest != asked.payload_digest or found.on_expiry is not asked.on_expiry or not same_form:
        raise ApprovalRequestConflict(
            approval_id=found.approval_id,
            round=found.round,
            payload_digest=found.payload_digest,
            on_expiry=found.on_expiry,
        )


def _check_open(wanted: int, newest: Approval | None) -> None:
    newest_round = newest.round if newest else 0
    if wanted != newest_round + 1 or (newest is not None and not newest.reopens):
        raise RoundNotOpen(newest_round=newest_round, newest_status=newest.status if newest else None)


def _check_state(case: Case) -> None:
    execution = case.execution
    if execution.status not in MAY_ASK:
        raise InvalidState(
            f"The execution is {execution.status} ({execution.status_reason or 'no reason kept'}), so nothing new can "
            "be asked; start a new execution. To go on after a deadline, ask with on_expiry=resume.",
            execution_status=execution.status,
            status_reason=execution.status_reason,
        )
